"""The client of a server, with a real one."""

import importlib.util
import json
import os
import re
import shutil
import subprocess
import tempfile
import threading
import unittest
import urllib.request
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any, Dict, List, Optional
from unittest import mock

from thalweg import DataError, Event, MachineError, ScriptError, Server, WaitingRun, find_program

SCRIPT = """
nodes:
  load: {type: file_table, r: {urls: ["%s"], types: {id: int}}, w: {name: ids%s}}
  write: {type: table_file, r: ids, w: {url_template: %s, columns: [{id: r.id}]}}
"""


class OverHTTP(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        self.dir = Path(folder)
        (self.dir / "jobs").mkdir()
        (self.dir / "serve.yaml").write_text("version: 1\nworkspaces: {main: {scripts: [jobs]}}\n")
        for name, data, more in (("good", "id\n1\n2\n", ""), ("bad", "id\nx\n", ""), ("gate", "id\n1\n", ", approval: {by: [sales]}")):
            (self.dir / (name + ".csv")).write_text(data)
            (self.dir / "jobs" / (name + ".yaml")).write_text(SCRIPT % (self.dir / (name + ".csv"), more, self.dir / (name + ".out.csv")))
        serve = [find_program(), "serve", "--listen", "127.0.0.1:0", "--worker", "--config", "serve.yaml"]
        self.process = subprocess.Popen(serve, cwd=self.dir, stderr=subprocess.PIPE, text=True)
        self.addCleanup(self.end)
        assert self.process.stderr is not None
        found = None
        while found is None:
            line = self.process.stderr.readline()
            self.assertTrue(line, "the server has ended")
            found = re.search(r"to sign in: (http://[^/]+)/start#(\S+)", line)
        # Nobody reads what it says: a pipe that is full would stop it.
        threading.Thread(target=self.process.stderr.read, daemon=True).start()
        self.url = found[1]
        cookie = self.login({"start": found[2]})
        grants = [{"workspace": "*", "role": "admin"}]
        self.post("/v1/users/ann", {"password": "correct horse battery", "grants": grants}, cookie, "PUT")
        cookie = self.login({"name": "ann", "password": "correct horse battery"})
        self.token = json.load(self.post("/v1/tokens", {"name": "test", "days": 1, "grants": grants}, cookie))["secret"]
        self.server = Server(self.url, token=self.token)

    def login(self, body: Dict[str, Any]) -> str:
        return str(self.post("/v1/login", body, None).headers["Set-Cookie"]).partition(";")[0]

    def post(self, path: str, body: Dict[str, Any], cookie: Optional[str], method: str = "POST") -> Any:
        headers = {"Content-Type": "application/json", **({"Cookie": cookie} if cookie else {})}
        answer = urllib.request.urlopen(urllib.request.Request(self.url + path, json.dumps(body).encode(), headers, method=method))
        self.addCleanup(answer.close)
        return answer

    def end(self) -> None:
        self.process.terminate()
        self.assertEqual(self.process.wait(), 0)

    def test_runs(self) -> None:
        self.assertTrue(self.server.validate("good.yaml").ok)
        events: List[Event] = []
        done = self.server.run("good.yaml", on_event=events.append, note="first")
        self.assertEqual((done.run, done.status), (1, "complete"))
        self.assertEqual([(n.name, n.rows_out) for n in done.nodes], [("load", 2), ("write", 2)])
        self.assertEqual([(Path(f.url).name, f.rows) for f in done.files], [("good.out.csv", 2)])
        self.assertIn(("batch_finished", "write"), [(e.kind, e.node) for e in events])
        self.assertEqual([e.data["n"] for e in events], list(range(1, len(events) + 1)))

        with self.assertRaises(DataError) as failed:
            self.server.run("bad.yaml")
        self.assertEqual((failed.exception.exit_code, failed.exception.run), (2, 2))
        self.assertEqual(failed.exception.place.value, "x")
        (self.dir / "bad.csv").write_text("id\n4\n")
        self.assertEqual(self.server.retry(2).status, "complete")

        with self.assertRaises(WaitingRun):
            self.server.run("gate.yaml")
        with self.assertRaises(ScriptError) as unknown:
            self.server.run("goof.yaml")
        self.assertIn("good.yaml", str(unknown.exception))
        with self.assertRaises(ScriptError):
            self.server.run("good.yaml", params={"a": 1})
        self.assertEqual([r.run for r in self.server.history()][:3], [1, 2, 3])
        self.assertEqual([r.run for r in self.server.history(limit=1)], [4])

    @unittest.skipUnless(importlib.util.find_spec("pyarrow"), "pyarrow is not there")
    def test_queries(self) -> None:
        self.server.run("good.yaml")
        self.assertEqual(self.server.table("ids").to_pydict(), {"id": [1, 2]})
        query = "SELECT id, id / 4 AS d, CASE WHEN id = 1 THEN 'a' END AS t FROM ids ORDER BY id"
        rows = self.server.arrow(query)
        self.assertEqual(rows.to_pydict(), {"id": [1, 2], "d": [0.25, 0.5], "t": ["a", None]})
        self.assertEqual(self.server.arrow("FROM range(3000)").num_rows, 3000)
        self.assertEqual([len(b) for b in self.server.batches("FROM range(5)", rows=2)], [2, 2, 1])
        if importlib.util.find_spec("polars"):
            self.assertEqual(list(self.server.polars(query)["id"]), [1, 2])
        if importlib.util.find_spec("pandas"):
            self.assertEqual(list(self.server.pandas(query)["id"]), [1, 2])
        with self.assertRaises(ScriptError) as unknown:
            self.server.arrow("FROM idz")
        self.assertIn("idz", str(unknown.exception))

    def test_a_package_that_is_missing(self) -> None:
        with mock.patch.dict("sys.modules", {"pyarrow": None, "pyarrow.parquet": None, "polars": None}):
            for name, call in (("arrow", lambda: self.server.arrow("FROM x")), ("polars", lambda: self.server.polars("FROM x"))):
                with self.assertRaises(ScriptError) as missing:
                    call()
                self.assertEqual(missing.exception.hint, "install thalweg[%s]" % name)

    def test_a_token_that_is_none(self) -> None:
        with self.assertRaises(ScriptError) as refused:
            Server(self.url, token="tw_secret").history()
        self.assertNotIn("tw_secret", str(refused.exception))
        with mock.patch.dict(os.environ, {"XDG_CONFIG_HOME": str(self.dir)}):
            os.environ.pop("THALWEG_TOKEN", None)
            with self.assertRaises(ScriptError):
                Server(self.url)
            (self.dir / "thalweg").mkdir()
            kept = self.dir / "thalweg" / "tokens.json"
            kept.write_text(json.dumps({self.url: self.token}))
            kept.chmod(0o600)
            self.assertEqual(Server(self.url).history(), [])


class Addresses(unittest.TestCase):
    def test_what_is_no_server(self) -> None:
        for url in ("data.example.com", "https://u:p@data.example.com", "https://data.example.com/x", "http://data.example.com"):
            with self.assertRaises(ScriptError):
                Server(url, token="tw_x")
        with self.assertRaises(MachineError):
            Server("http://127.0.0.1:1", token="tw_x").history()

    def test_a_redirect_does_not_get_the_token(self) -> None:
        asked: List[str] = []

        class Away(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                asked.append(self.path)
                self.send_response(302)
                self.send_header("Location", "/elsewhere")
                self.end_headers()

            def log_message(self, *args: Any) -> None:
                pass

        with HTTPServer(("127.0.0.1", 0), Away) as away:
            threading.Thread(target=away.serve_forever, daemon=True).start()
            with self.assertRaises(MachineError):
                Server("http://127.0.0.1:%d" % away.server_port, token="tw_x").history()
            away.shutdown()
        self.assertEqual(len(asked), 1)


if __name__ == "__main__":
    unittest.main()
