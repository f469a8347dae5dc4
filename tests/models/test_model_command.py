"""`farhorizon model`."""

from typer.testing import CliRunner

from farhorizon.cli import model as command


def test_list_says_what_is_fetched_and_what_is_made(tmp_path, monkeypatch):
    monkeypatch.setenv("FARHORIZON_CACHE", str(tmp_path))
    shown = CliRunner().invoke(command.app, ["list"], env={"COLUMNS": "200"})
    assert shown.exit_code == 0
    assert "smollm2-135m-instruct" in shown.output
    assert "not fetched" in shown.output
    made = tmp_path / "micro" / "0123abcd"
    made.mkdir(parents=True)
    (made / "model.safetensors").write_bytes(b"0" * 1_200_000)
    assert f"{made}  1.2 MB" in CliRunner().invoke(command.app, ["list"]).output


def test_fetch_says_where_the_model_is(tmp_path, monkeypatch):
    monkeypatch.setattr(command, "fetch", lambda name, report: report("converting") or tmp_path)
    shown = CliRunner().invoke(command.app, ["fetch", "smollm2-135m-instruct"])
    assert shown.output.splitlines()[-1].startswith(f"smollm2-135m-instruct is ready in {tmp_path}")
    assert "converting" in shown.output
