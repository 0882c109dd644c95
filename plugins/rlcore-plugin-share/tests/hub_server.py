"""A server on loopback that answers as the Hugging Face hub does, as far as a push and a pull ask it."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote, urlsplit

# files up to this size go into the commit itself, larger ones are uploaded before it
REGULAR = 1000


class HubServer(ThreadingHTTPServer):
    """Repositories in memory.

    Attributes:
        repositories: by type and name, the content of each file.
        uploaded: by SHA-256, what was uploaded for a commit.
        uploads: how many uploads arrived.
        commits: how many commits arrived.
        fail_after: how many uploads are taken before the others are refused; None to take all.
    """

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.repositories, self.uploaded = {}, {}
        self.uploads = self.commits = 0
        self.fail_after = None

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: HubServer

    def log_message(self, *arguments):
        """Print nothing."""

    def handle_asked(self):
        path = unquote(urlsplit(self.path).path)
        length = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(length)
        if self.headers.get("Transfer-Encoding") == "chunked":
            body = b""
            while size := int(self.rfile.readline(), 16):
                body += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
        for method, form, answer in ROUTES:
            match = re.fullmatch(form, path)
            if match and self.command in method:
                return getattr(self, answer)(body, *match.groups())
        return self.answer(404, {"error": f"{self.command} {path}"})

    do_GET = do_HEAD = do_POST = do_PUT = handle_asked  # noqa: N815 - the names that the base class asks for

    def answer(self, status, content, **headers):
        raw = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), str(value))
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(raw)

    def create(self, body):
        asked = json.loads(body)
        name = "/".join(filter(None, [asked.get("organization"), asked["name"]]))
        self.server.repositories.setdefault((asked.get("type") or "model", name), {})
        self.answer(200, {"url": f"{self.server.url}/{name}", "id": name, "name": name})

    def validate(self, body):
        self.answer(200, {"errors": [], "warnings": []})

    def files(self, kind, name):
        return self.server.repositories.get((kind.removesuffix("s"), name))

    def missing(self):
        self.answer(404, {"error": "Repository not found"}, X_Error_Code="RepoNotFound")

    def about(self, body, kind, name, revision=None):
        files = self.files(kind, name)
        if files is None:
            return self.missing()
        return self.answer(200, {"id": name, "modelId": name, "sha": f"{self.server.commits:040x}", "siblings": []})

    def entry(self, path, content):
        entry = {"type": "file", "path": path, "size": len(content), "oid": hashlib.sha1(content).hexdigest()}
        if len(content) > REGULAR:
            digest = hashlib.sha256(content).hexdigest()
            entry["lfs"] = {"oid": digest, "size": len(content), "pointerSize": 130}
        return entry

    def tree(self, body, kind, name, revision, below):
        files = self.files(kind, name)
        if files is None:
            return self.missing()
        inside = [
            self.entry(path, content) for path, content in files.items() if path.startswith((below or "").lstrip("/"))
        ]
        return self.answer(200, inside)

    def paths(self, body, kind, name, revision):
        from urllib.parse import parse_qs

        files, text = self.files(kind, name), body.decode()
        wanted = json.loads(text)["paths"] if text.startswith("{") else parse_qs(text)["paths"]
        self.answer(200, [self.entry(path, files[path]) for path in wanted if path in files])

    def preupload(self, body, kind, name, revision):
        asked = json.loads(body)["files"]
        modes = [
            {"path": file["path"], "uploadMode": "lfs" if file["size"] > REGULAR else "regular", "shouldIgnore": False}
            for file in asked
        ]
        self.answer(200, {"files": modes})

    def batch(self, body, name):
        objects = []
        for wanted in json.loads(body)["objects"]:
            entry = {"oid": wanted["oid"], "size": wanted["size"]}
            if wanted["oid"] not in self.server.uploaded:
                entry["actions"] = {"upload": {"href": f"{self.server.url}/lfs/{wanted['oid']}"}}
            objects.append(entry)
        self.answer(200, {"transfer": "basic", "objects": objects})

    def upload(self, body, digest):
        if self.server.fail_after is not None and self.server.uploads >= self.server.fail_after:
            return self.answer(403, {"error": "no more"})
        if hashlib.sha256(body).hexdigest() != digest:
            return self.answer(400, {"error": "another checksum"})
        self.server.uploads += 1
        self.server.uploaded[digest] = body
        return self.answer(200, {})

    def commit(self, body, kind, name, revision):
        files = self.files(kind, name)
        for line in body.decode().splitlines():
            operation = json.loads(line)
            value = operation["value"]
            if operation["key"] == "file":
                files[value["path"]] = base64.b64decode(value["content"])
            elif operation["key"] == "lfsFile":
                files[value["path"]] = self.server.uploaded[value["oid"]]
            elif operation["key"] == "deletedFile":
                del files[value["path"]]
        self.server.commits += 1
        oid = f"{self.server.commits:040x}"
        self.answer(200, {"success": True, "commitUrl": f"{self.server.url}/{name}/commit/{oid}", "commitOid": oid})

    def resolve(self, body, kind, name, revision, path):
        files = self.files(kind or "models", name)
        if files is None or path not in files:
            return self.answer(404, {"error": "Entry not found"}, X_Error_Code="EntryNotFound")
        content, headers = files[path], {"ETag": '"x"', "X_Repo_Commit": revision, "Accept_Ranges": "bytes"}
        asked = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range") or "")
        if asked is None:
            return self.answer(200, content, **headers)
        begin, end = int(asked[1]), int(asked[2] or len(content) - 1)
        headers["Content_Range"] = f"bytes {begin}-{end}/{len(content)}"
        return self.answer(206, content[begin : end + 1], **headers)


_REPOSITORY = r"/api/(models|datasets)/([^/]+/[^/]+)"
ROUTES = (
    (("POST",), r"/api/repos/create", "create"),
    (("POST",), r"/api/validate-yaml", "validate"),
    (("GET",), rf"{_REPOSITORY}(?:/revision/([^/]+))?", "about"),
    (("GET",), rf"{_REPOSITORY}/tree/([^/]+)(/.*)?", "tree"),
    (("POST",), rf"{_REPOSITORY}/paths-info/([^/]+)", "paths"),
    (("POST",), rf"{_REPOSITORY}/preupload/([^/]+)", "preupload"),
    (("POST",), rf"{_REPOSITORY}/commit/([^/]+)", "commit"),
    (("POST",), r"/(?:datasets/)?([^/]+/[^/]+)\.git/info/lfs/objects/batch", "batch"),
    (("PUT",), r"/lfs/([0-9a-f]{64})", "upload"),
    (("GET", "HEAD"), r"/(?:(datasets)/)?([^/]+/[^/]+)/resolve/([^/]+)/(.+)", "resolve"),
)
