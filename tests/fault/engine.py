"""A Docker Engine as the drivers of this folder use it: an image for their tasks, and what is left in it."""
import hashlib
import http.client
import io
import json
import os
import pathlib
import re
import shutil
import socket
import struct
import subprocess
import tarfile


class _Connection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("docker", timeout=60)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


class Engine:
    """The one that answers at PROCTOR_DOCKER_SOCKET or the usual place; `found()` is None where none does."""

    @staticmethod
    def found():
        for path in (os.environ.get("PROCTOR_DOCKER_SOCKET", ""), "/var/run/docker.sock"):
            engine = Engine(path)
            try:
                if path and engine.call("GET", "/_ping") == b"OK":
                    return engine
            except (OSError, RuntimeError):
                pass
        return None

    @staticmethod
    def started():
        """One of our own, by scripts/lib-docker.sh, that ends with this process; None, with the reason on standard
        error, where none can be."""
        top = pathlib.Path(__file__).resolve().parent.parent.parent
        shell = subprocess.Popen(
            ["sh", "-c", '. scripts/lib-docker.sh; docker_ensure || exit 1; trap docker_stop_ours EXIT; trap "exit 1" TERM INT HUP; '
             'echo "$PROCTOR_DOCKER_SOCKET"; read _'],
            cwd=top, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        path = shell.stdout.readline().strip()
        if not path:
            shell.wait()
            return None
        engine = Engine(path)
        engine.shell = shell
        return engine

    def stop(self):
        """Ends what started() began; an engine that was there stays."""
        if self.shell is not None:
            self.shell.stdin.close()
            self.shell.wait()

    def __init__(self, path):
        self.shell = None
        self.socket = path
        self.image = None

    def call(self, method, target, body=None):
        connection = _Connection(self.socket)
        try:
            connection.request(method, target, body, {"Content-Type": "application/x-tar" if isinstance(body, bytes) else "application/json"})
            reply = connection.getresponse()
            data = reply.read()
        finally:
            connection.close()
        if reply.status > 299:
            raise RuntimeError(f"{method} {target}: {reply.status} {data[:200]}")
        return data

    def pid(self):
        """Of the engine: whoever listens at the socket."""
        with socket.socket(socket.AF_UNIX) as s:
            s.connect(self.socket)
            return struct.unpack("3i", s.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0]

    def make_image(self):
        """This machine's shell and sleep with their libraries; the id, kept until remove_image()."""
        files = {}
        for program in ("sh", "sleep"):
            path = pathlib.Path(shutil.which(program)).resolve()
            files[f"bin/{program}"] = path
            for line in subprocess.run(["ldd", str(path)], capture_output=True, text=True, check=True).stdout.splitlines():
                for library in re.findall(r"(/\S+)", line.split("=>")[-1]):
                    named = line.split("=>")[0].strip().split()[0]
                    files[(named if named.startswith("/") else library).lstrip("/")] = pathlib.Path(library).resolve()
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w") as tar:
            for name, path in sorted(files.items()):
                info = tarfile.TarInfo(name)
                info.mode, info.size = 0o755, path.stat().st_size
                with open(path, "rb") as f:
                    tar.addfile(info, f)
        said = self.call("POST", f"/v1.41/images/create?fromSrc=-&repo=proctor-chaos-{os.getpid()}", packed.getvalue())
        self.image = json.loads(said.splitlines()[-1])["status"]
        return self.image

    def remove_image(self):
        if self.image:
            self.call("DELETE", f"/v1.41/images/{self.image}?force=1")
            self.image = None

    def left_of(self, worker, root):
        """Containers and volumes of a worker of this name and root: the labels that it gives them."""
        owner = f"{worker}-{hashlib.sha256(str(pathlib.Path(root).absolute()).encode()).hexdigest()[:12]}"
        label = "?all=1&filters=" + json.dumps({"label": [f"proctor.owner={owner}"]}).replace('"', "%22").replace(" ", "%20")
        containers = json.loads(self.call("GET", "/v1.41/containers/json" + label))
        volumes = json.loads(self.call("GET", "/v1.41/volumes" + label))["Volumes"] or []
        return [f"container {c['Names'][0]} of {worker}" for c in containers] + [f"volume {v['Name']} of {worker}" for v in volumes]
