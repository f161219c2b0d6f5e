"""The examples of README.md, as they are printed."""

import contextlib
import io
import os
import re
import tempfile
import unittest
from pathlib import Path

README = Path(__file__).parent.parent / "README.md"
FILES = {
    "project/script.yaml": """
nodes:
  read: {type: file_table, r: {urls: ["{month}.csv"], types: {n: int}}, w: rows}
  write: {type: table_file, r: rows, w: out.csv}
""",
    "project/2026-01.csv": "n\n1\n",
    "loans.py": "def fee(principal):\n    return principal * 0.0125\n",
    "sessions.py": """
def sessions(rows, pause):
    starts = [m for before, m in zip([-1000, *rows["minute"]], rows["minute"]) if m - before > pause]
    return [{"start": m} for m in starts]
""",
}


class Readme(unittest.TestCase):
    def test_examples_run(self) -> None:
        blocks = re.findall(r"^```python\n(.*?)^```", README.read_text(encoding="utf-8"), re.M | re.S)
        self.assertEqual(len(blocks), 2)
        before = os.getcwd()
        with tempfile.TemporaryDirectory() as folder:
            for name, text in FILES.items():
                path = Path(folder, name)
                path.parent.mkdir(exist_ok=True)
                path.write_text(text, encoding="utf-8")
            os.chdir(folder)
            try:
                said = io.StringIO()
                with contextlib.redirect_stdout(said):
                    for block in blocks:
                        exec(compile(block, "README.md", "exec"), {})
            finally:
                os.chdir(before)
        self.assertRegex(said.getvalue(), r"^1 [0-9:.]+ \['.*out.csv'\]\n$")


if __name__ == "__main__":
    unittest.main()
