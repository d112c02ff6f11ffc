from __future__ import annotations

import stat
from pathlib import Path

import pytest

from paddleflow.cli.config import TokenCache, change_password, load_config
from paddleflow.domain.errors import Invalid

GOOD = "[user]\nname = alice\npassword = 50%off\n[server]\npaddleflow_server_host = h\npaddleflow_server_port = 9000\n"


def _mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_default_file_is_made_private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    config = load_config(None)
    assert (config.user, config.password, config.host, config.port) == ("root", "paddleflow", "127.0.0.1", 8999)
    assert config.path == tmp_path / ".paddleflow" / "paddleflow.ini"
    assert (_mode(config.path), _mode(config.path.parent)) == (0o600, 0o700)
    assert load_config(None) == config


def test_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "c.ini"
    path.write_text(GOOD)
    config = load_config(path)
    assert (config.user, config.password, config.host, config.port) == ("alice", "50%off", "h", 9000)
    assert "50%off" not in repr(config)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (None, "no config file in"),
        ("", "no user or server conf in"),
        ("[user]\nname = a\n", "no user or server conf in"),
        ("[user]\nname = a\n[server]\n", "no name or password conf['user'] in"),
        ("[user]\nname = a\npassword = b\n[server]\n", "no paddleflow_server_host in"),
        (GOOD.replace("9000", "many"), "paddleflow_server_port"),
        (GOOD.replace("9000", "70000"), "paddleflow_server_port"),
        ("name = a\n", "is not an ini file"),
    ],
)
def test_what_is_wrong_is_said(tmp_path: Path, content: str | None, sentence: str) -> None:
    path = tmp_path / "c.ini"
    if content is not None:
        path.write_text(content)
    with pytest.raises(Invalid) as caught:
        load_config(path)
    assert sentence in caught.value.message
    assert str(path) in caught.value.message


def test_port_has_a_default(tmp_path: Path) -> None:
    path = tmp_path / "c.ini"
    path.write_text(GOOD.replace("paddleflow_server_port = 9000\n", ""))
    assert load_config(path).port == 8999


def test_tokens_are_kept_by_user_and_password(tmp_path: Path) -> None:
    path = tmp_path / "c.ini"
    path.write_text(GOOD)
    TokenCache(load_config(path)).keep("t1")
    path.write_text(GOOD.replace("alice", "bob"))
    TokenCache(load_config(path)).keep("t2")
    assert TokenCache(load_config(path)).find() == "t2"
    path.write_text(GOOD)
    assert TokenCache(load_config(path)).find() == "t1"
    path.write_text(GOOD.replace("50%off", "other"))
    assert TokenCache(load_config(path)).find() is None
    kept = tmp_path / "c.ini.tokens"
    assert _mode(kept) == 0o600
    assert "50%off" not in kept.read_text()


def test_damaged_tokens_are_forgotten(tmp_path: Path) -> None:
    path = tmp_path / "c.ini"
    path.write_text(GOOD)
    (tmp_path / "c.ini.tokens").write_text("[not json")
    cache = TokenCache(load_config(path))
    assert cache.find() is None
    cache.keep("t")
    assert cache.find() == "t"


def test_a_new_password_changes_its_line_and_no_other(tmp_path: Path) -> None:
    path = tmp_path / "c.ini"
    path.write_text("# mine\n" + GOOD + "[other]\npassword = untouched\n")
    change_password(path, "new%1")
    assert path.read_text() == "# mine\n" + GOOD.replace("50%off", "new%1") + "[other]\npassword = untouched\n"
    assert load_config(path).password == "new%1"
    assert _mode(path) == 0o600
