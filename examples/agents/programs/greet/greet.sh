echo "Hello"
