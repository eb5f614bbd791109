"""Asks the service twice, by its name."""
import sys
import urllib.request

said = [urllib.request.urlopen("http://page:8080/").read().decode() for _ in range(2)]
print(said)
sys.exit(said != ["visit 1\n", "visit 2\n"])
