"""A program that answers W&B's library like its server: runs, their history by line, and uploaded files.

It keeps what arrived in a JSON file, so that it can be killed and started again. Arguments: the port, and that file.
"""

from __future__ import annotations

import gzip
import json
import os
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

PROJECT = {"id": "p", "name": "games", "entity": {"id": "e", "name": "team"}}


class Runs:
    """What arrived: by id of the run `rows` (line number to text), `config`, `exit` and the names of `files`."""

    def __init__(self, file):
        self.file = file
        self.runs = json.loads(file.read_text()) if file.exists() else {}
        self.lock = threading.Lock()

    def answer(self, path, body, address):
        with self.lock:
            if path == "/graphql":
                asked = json.loads(body)
                reply = {"data": self.query(asked.get("operationName"), asked.get("variables") or {}, address)}
            elif path.endswith("/file_stream"):
                reply = self.stream(self.runs[path.split("/")[-2]], json.loads(body))
            elif path.startswith("/upload/"):
                _, _, run, name = path.split("/", 3)
                self.runs[run]["files"].append(name)
                reply = {}
            else:
                reply = {}
            new = self.file.with_suffix(".new")
            new.write_text(json.dumps(self.runs))
            os.replace(new, self.file)
            return reply

    def query(self, operation, variables, address):
        if operation == "RunResumeStatus":
            return {"model": {**PROJECT, "bucket": self.described(variables["name"])}}
        if operation == "UpsertBucket":
            inserted = variables["name"] not in self.runs
            run = self.runs.setdefault(variables["name"], {"rows": {}, "config": {}, "exit": None, "files": []})
            run["config"].update(json.loads(variables.get("config") or "{}"))
            bucket = {**self.described(variables["name"]), "project": PROJECT, "sweepName": None, "description": ""}
            return {"upsertBucket": {"bucket": bucket, "inserted": inserted}}
        if operation == "CreateRunFiles":
            run = variables["run"]
            files = [{"name": name, "uploadUrl": f"{address}/upload/{run}/{name}"} for name in variables["files"]]
            return {"createRunFiles": {"runID": run, "uploadHeaders": [], "files": files}}
        return {}

    def described(self, name):
        if name not in self.runs:
            return None
        rows = self.runs[name]["rows"]
        last = [rows[max(rows, key=int)]] if rows else []
        counts = {"logLineCount": 0, "historyLineCount": len(rows), "eventsLineCount": 0}
        tails = {
            "historyTail": json.dumps(last),
            "eventsTail": "[]",
            "summaryMetrics": "{}",
            "wandbConfig": json.dumps({"t": 1}),
        }
        about = {"config": json.dumps(self.runs[name]["config"]), "wandbConfig": json.dumps({"t": 1}), "tags": []}
        return {"id": name, "name": name, "displayName": name, **about, **counts, **tails}

    def stream(self, run, sent):
        history = sent.get("files", {}).get("wandb-history.jsonl", {"content": [], "offset": 0})
        for number, line in enumerate(history["content"], start=history["offset"]):
            run["rows"][str(number)] = line
        if sent.get("complete"):
            run["exit"] = sent.get("exitcode")
        return {}


def serve(port, file):
    runs = Runs(file)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def reply(self):
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            if self.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            answer = json.dumps(runs.answer(self.path, body, f"http://127.0.0.1:{server.server_port}")).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        do_GET = do_POST = do_PUT = reply  # noqa: N815

        def log_message(self, *arguments):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    server.handle_error = lambda *arguments: None  # of connections that W&B drops
    print(server.server_port, flush=True)
    threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()  # ends with its parent
    server.serve_forever()


if __name__ == "__main__":
    serve(int(sys.argv[1]), Path(sys.argv[2]))
