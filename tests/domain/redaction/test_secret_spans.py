"""Beside a name that says secret stands one, unless it is a variable, code, a word or an amount."""

import pytest

from subagents.domain.redaction.redact import may_hold_secret, redact
from subagents.domain.redaction.secret_spans import REDACTED, looks_random, spans_in_line


@pytest.mark.requirement("redact:code")
@pytest.mark.parametrize(
    "text",
    [
        "token = self._next_token(text)[1:]", "password=password, token=token", "tokens: list[str]",
        "apiKey: process.env.OPENAI_API_KEY,", "password = config.password  # from the file",
        "credentials: GoogleCredentials | None = None", "max_tokens=10**9)", "KEY_DOWN: 'kcud1'",
        'password = os.environ["DB_PASSWORD"]', "secrets_of=lambda run: own(run)", "token == 0x1f",
        "password: ${DB_PASSWORD}", "https://user:password@example.org/", "secret: <your secret>",
        "Authorization: Bearer $(cat token)", '"Authorization": f"Bearer {token}"', "token = 3",
        "unexpected token: identifier", "Password: required", "cookie = self.tell()",
        "password-file: /etc/app/secret.txt", "TOKEN_URL=https://h/oauth/token", "sort_key=name2",
        "Cache restored from key: linux-node-" + "0f" * 32, "secretName: web-tls",
        'sessionKey: "agent:main:subagent:6fa459ea-ee8a-3ca4-894e-db77e160355e"',
        "sentry release " + "0a1b" * 10 + " deployed", "password: {{ secrets.DB }}", "token=***",
    ],
)  # fmt: skip
def test_code_prose_and_placeholders_are_no_secrets(text: str) -> None:
    assert redact(text) == text


@pytest.mark.requirement("redact:beside-names")
@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ('x(token="a1b2c3d4e5", n=3)', f'x(token="{REDACTED}", n=3)'),
        ("token = login(password='hunter22')", f"token = login(password='{REDACTED}')"),
        ("password: swordfish", f"password: {REDACTED}"),
        ('token: str = "a1b2c3d4e5"', f'token: str = "{REDACTED}"'),
        ("exit code 3: token=a1b2c3d4e5", f"exit code 3: token={REDACTED}"),
        ('if token == "a1b2c3d4e5":', f'if token == "{REDACTED}":'),
        ("API key: 4f9a81b2c7d0", f"API key: {REDACTED}"),
        ("MYSQL_PWD=swordfish PWD=/home/ann", f"MYSQL_PWD={REDACTED} PWD=/home/ann"),
        ("key=Zm9vYmFy12QuxXq9LmNo0p", f"key={REDACTED}"),
        ("<Password>sword</Password>", f"<Password>{REDACTED}</Password>"),
        ("ä ö token=a1b2c3d4e5 ü", f"ä ö token={REDACTED} ü"),
        ("ä AKIA" + "Q3" * 8 + " ü", f"ä {REDACTED} ü"),
        (r"A=1\nghp_" + "a1B2" * 9 + r"\n", rf"A=1\n{REDACTED}\n"),
        ("Private-Lines: 2\nAAAA\nBBBB\nPrivate-MAC: 0f0f", REDACTED),
    ],
)
def test_what_stands_beside_a_name_is_hidden_and_the_rest_stays(text: str, shown: str) -> None:
    assert redact(text) == shown


@pytest.mark.requirement("redact:fast")
@pytest.mark.parametrize(
    "text",
    [
        '{"usage": {"input_tokens": 1024, "output_tokens": 1.5}, "id": 7}', "max_tokens=4096, n=3",
        "'total_tokens': 12}, {'cache_key': 3}]", "tokens: 12k", 'token_count="17ms"', "tokens: 3;",
    ],
)  # fmt: skip
def test_an_amount_beside_a_name_needs_no_second_look(text: str) -> None:
    assert not may_hold_secret(text)


@pytest.mark.requirement("redact:beside-names")
@pytest.mark.parametrize(
    "value", ["12ab34cd", "12345678901234567890", "9:81/2c", "12-34", "7)b3", "3secret9"]
)
def test_what_begins_with_digits_and_is_no_amount_is_hidden(value: str) -> None:
    assert redact(f'"token": "{value}", n') == f'"token": "{REDACTED}", n'


@pytest.mark.requirement("redact:beside-names")
def test_what_a_machine_made_looks_random_and_names_do_not() -> None:
    for value in ("9f86d081884c7d659a2feaa0c55ad015", "Zm9vYmFy12QuxXq9LmNo", "k3j9x0q2m5v7b1n8"):
        assert looks_random(value)
    for value in (
        *("user_name_2024_11", "getElementsByClassName2", "http://127.0.0.1:9000/subagents"),
        *("12345678901234567890", "aaaaaaaaaaaaaaaa1", "version-1.2.3-beta-4", "short1"),
    ):
        assert not looks_random(value)


@pytest.mark.requirement("redact:beside-names")
def test_spans_say_where_a_secret_stands() -> None:
    assert list(spans_in_line("a token=a1b2c3d4e5;")) == [(8, 18)]


@pytest.mark.requirement("redact:password-flags")
@pytest.mark.parametrize(
    "text",
    [
        "mysql -u root -p shop", "mysql -P 3306 -p", "mysql -p$MYSQL_PW shop", "ssh -p 22 h",
        "mysql -p'${PW}' shop", "docker run -p 8080:80 mysql", "docker run mongo -p 27017:27017",
        "mysql -p3306",
        "mkdir -p mysql/data/files", "mysql h | grep -pattern", "cp -p mysql.conf other.conf",
        "redis-cli -h r -p 6379", "mongod --port 27017", "pytest -p no:cacheprovider",
        "unzip -l x.zip",
        "openssl s_client -connect h:443 -showcerts", "see https://h/x -a y", "mysqld -pidfile",
        "http -a: see above", "zip -r x.zip directory", "the docker login page -- press p",
        "mysql -uroot -p[redacted] shop",
    ],
)  # fmt: skip
def test_flags_that_take_no_password_stay(text: str) -> None:
    assert redact(text) == text


@pytest.mark.requirement("redact:password-flags")
@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("mysqldump -psword shop > x.sql", f"mysqldump -p{REDACTED} shop > x.sql"),
        ('{"command":"mysql -uroot -psword s"}', f'{{"command":"mysql -uroot -p{REDACTED} s"}}'),
        ("mariadb -p'two words' s", f"mariadb -p'{REDACTED}' s"),
        ("sshpass -psword ssh -p 22 h", f"sshpass -p{REDACTED} ssh -p 22 h"),
        ('["docker", "login", "-p", "sword"]', f'["docker", "login", "-p", "{REDACTED}"]'),
        ("cat x | redis-cli -a sword ping | cat", f"cat x | redis-cli -a {REDACTED} ping | cat"),
    ],
)
def test_a_password_behind_a_flag_of_its_program_is_hidden(text: str, shown: str) -> None:
    assert redact(text) == shown


@pytest.mark.requirement("redact:published-formats")
@pytest.mark.parametrize(
    "text",
    [
        "fw_firmware_version_2024_11", "fw_updateFirmwareVersionString", "EAABjcZBuilder",
        "csk-short", "api-gateway-service", "sdk-v2", "rnd_generator_of_numbers_for_tests",
        "cio_write_all_of_it", "aio_read_multiple_blocks_of_data_", "pk_1234_index", "hcaik_",
        "vercel_blob_read_write_token_of_project", "AVNS_",
        "dose0123", "fc-list", "nvapi-client", "jina_embeddings_v3",
        "polar_coordinates", "sk_buff_head_of_the_queue", "bkua_",
    ],
)  # fmt: skip
def test_names_that_begin_like_a_secret_stay(text: str) -> None:
    assert redact(f"see {text} there") == f"see {text} there"
