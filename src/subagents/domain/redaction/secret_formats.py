"""What secrets look like, as data: formats that providers publish, and words that name secrets.

Patterns are for RE2, which has no lookaround and needs none: a format stands behind a character
that is neither letter nor digit (``secret_spans``). ``\\b`` at an end says that it has exactly so
many characters. Nothing here is a value, and none of it is a secret.

Compared with the rules of gitleaks of 2026-07-22 and with the types that GitHub's secret scanning
lists on 2026-11-28, as far as their providers say what they look like.
"""

from typing import Final, NamedTuple


class Format(NamedTuple):
    """One format of one provider."""

    name: str
    pattern: str
    hint: str = ""
    """Stands in each of them, and rarely elsewhere; for a format that begins with anything."""
    looks_random: bool = False
    """The prefix is a word, or so short that chance writes it: the rest must look random, too."""


_URL: Final = r"[\w-]"
_WORD: Final = "[A-Za-z0-9]"
_UUID: Final = "[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"

FORMATS: Final = (
    Format("subagents", rf"sa_[0-9a-z-]{{1,64}}_[0-9]{{1,6}}_{_URL}{{16,}}"),
    # -- models
    Format("OpenAI, Anthropic and those who copied them", rf"sk-{_URL}{{16,}}"),
    Format("Hugging Face", rf"(?:hf_|api_org_){_WORD}{{20,}}"),
    Format("Replicate", rf"r8_{_WORD}{{30,}}"),
    Format("Groq", rf"gsk_{_WORD}{{30,}}"),
    Format("xAI, Perplexity", rf"(?:xai|pplx)-{_WORD}{{30,}}"),
    Format("Together", rf"tgp_v1_{_URL}{{30,}}"),
    Format("LangSmith", r"lsv2_[a-z]{2}_[0-9a-f]{32}_[0-9a-f]{10}"),
    Format("Fireworks", rf"fw_{_WORD}{{20,}}", looks_random=True),
    Format("NVIDIA", rf"nvapi-{_URL}{{40,}}"),
    Format("Cerebras", r"csk-[a-z0-9]{40,}"),
    Format("ElevenLabs", r"sk_[0-9a-f]{48}"),
    Format("Pinecone", r"pcsk_\w{30,}"),
    Format("Tavily, Firecrawl, Jina", rf"tvly-{_URL}{{20,}}|fc-[0-9a-f]{{32}}|jina_{_URL}{{40,}}"),
    Format("E2B, Apify", rf"e2b_[0-9a-f]{{40}}|apify_api_{_WORD}{{30,}}"),
    Format("LlamaCloud", rf"llx-{_WORD}{{40,}}"),
    Format("RunPod", r"rpa_[A-Z0-9]{30,}"),
    Format("Weights & Biases", r"wandb_v1_\w{40,}"),
    Format("Baidu", r"bce-v3/ALTAK-[A-Za-z0-9]{21}/[0-9a-f]{40}"),
    # -- code and packages
    Format("GitHub", rf"gh[oprsu]_{_WORD}{{16,}}|github_pat_\w{{16,}}"),
    Format(
        "GitLab",
        r"gl(?:pat|ptt|dt|rt|cbt|soat|ft|imt|agent|oas|ffct)-[\w-]{16,}(?:\.[0-9a-z]{9}\b)?"
        rf"|GR1348941{_URL}{{16,}}",
    ),
    Format("Bitbucket, Atlassian", rf"ATBB{_WORD}{{28,}}|ATATT3[\w=-]{{30,}}"),
    Format("Sourcegraph", r"sgp_(?:[0-9a-fA-F]{16}_|local_)?[0-9a-fA-F]{40}"),
    Format("CircleCI", rf"CCI(?:PAT|PRJ)_{_WORD}{{16,}}_[0-9a-f]{{40}}"),
    Format("Codecov, Sonar", r"sq[uap]_[0-9a-f]{40}"),
    Format("npm", rf"npm_{_WORD}{{20,}}"),
    Format("PyPI", rf"pypi-Ag{_URL}{{16,}}"),
    Format("RubyGems", r"rubygems_[0-9a-f]{32,}"),
    Format("Clojars", r"(?i:clojars_[a-z0-9]{60})"),
    Format("NuGet", r"oy2[a-z0-9]{43}\b", looks_random=True),
    Format("Docker Hub", rf"dckr_[a-z]{{2,4}}_{_URL}{{16,}}"),
    Format("crates.io", r"cio[A-Za-z0-9]{32}\b"),
    Format("Buildkite", r"bk[a-z]{2}_[0-9a-f]{40}"),
    Format("Deno", rf"dd[pow]_{_WORD}{{36}}"),
    Format("Artifactory", rf"AKCp{_WORD}{{60,}}|cmVmd{_WORD}{{59}}\b"),
    # -- clouds and hosts
    Format("AWS", r"(?:AKIA|ASIA|ABIA|ACCA)[0-9A-Z]{16,}|A3T[0-9A-Z][A-Z2-7]{16}\b"),
    Format(
        "AWS Bedrock", rf"ABSK[A-Za-z0-9+/]{{100,}}={{0,2}}|bedrock-api-key-{_WORD}[\w+/=-]{{20,}}"
    ),
    Format("Azure AD", r"[\w.~]{3}[0-9]Q~[\w.~-]{31,34}", r"[0-9]Q~"),
    Format("Google", rf"AIza{_URL}{{30,}}|ya29\.{_URL}{{16,}}|GOCSPX-{_URL}{{16,}}"),
    Format("Google refresh", rf"1//0{_URL}{{30,}}"),
    Format("Alibaba", r"LTAI[A-Za-z0-9]{20}\b"),
    Format("Yandex", rf"AQVN{_URL}{{35,38}}\b|t1\.{_URL}{{20,400}}={{0,2}}\.{_URL}{{86}}"),
    Format("DigitalOcean", r"do[opr]_v1_[0-9a-f]{32,}"),
    Format("Cloudflare", r"v1\.0-[0-9a-f]{24}-[0-9a-f]{100,}"),
    Format("Fly.io", rf"fo1_{_URL}{{40,}}|fm(?:1[ar]|2)_[A-Za-z0-9+/]{{60,}}={{0,3}}"),
    Format("Heroku", rf"HRKU-{_URL}{{30,}}"),
    Format("Netlify, Vercel", rf"nfp_{_WORD}{{30,}}|vc[piark]_{_WORD}{{40,}}"),
    Format("Vercel Blob", r"vercel_blob_[a-z]{2,6}_\w{20,}", looks_random=True),
    Format("Render", rf"rnd_{_WORD}{{28,}}", looks_random=True),
    Format("Tencent", r"AKID[A-Za-z0-9]{32}"),
    Format("Scalingo", rf"tk-us-{_URL}{{40,}}"),
    Format("Tailscale", rf"tskey-[a-z]{{2,8}}-{_WORD}{{8,}}-{_WORD}{{16,}}"),
    Format("Defined Networking", r"dnkey-[\w=-]{26}-[\w=-]{52}"),
    Format("OpenShift", rf"sha256~{_URL}{{43}}"),
    Format("Vault", rf"hv[bsr]\.{_URL}{{20,}}"),
    Format("Terraform", r"(?:[A-Za-z0-9]{14}\.)?atlasv1\.[\w=-]{32,}", r"atlasv1\.[\w=-]{32}"),
    Format("Pulumi", r"pul-[0-9a-f]{32,}"),
    Format("Doppler", rf"dp\.[a-z]{{2,5}}\.{_WORD}{{32,}}"),
    Format("1Password", r"A3-[A-Z0-9]{6}(?:-[A-Z0-9]{5,11}){4,5}|ops_eyJ[A-Za-z0-9+/]{100,}={0,3}"),
    Format("age", r"AGE-SECRET-KEY-1[0-9A-Z]{30,}"),
    Format("Infracost", r"ico-[A-Za-z0-9]{32}\b"),
    Format("Harness", rf"[ps]at\.{_URL}{{22}}\.{_WORD}{{24}}\.{_WORD}{{20}}"),
    Format("Octopus Deploy", r"API-[A-Z0-9]{26}\b", looks_random=True),
    Format("Prefect", r"pnu_[A-Za-z0-9]{36}"),
    Format(
        "Authress",
        r"(?:sc|ext|scauth|authress)_\w{5,30}\.\w{4,6}\.acc[_-][\w-]{10,32}"
        r"\.[\w+/=-]{30,}",
    ),
    # -- data
    Format("Databricks", r"d(?:api|ose|kea)[0-9a-f]{32,}"),
    Format("PlanetScale", r"pscale_[a-z]{2,6}_[\w=.-]{16,}"),
    Format("Supabase", rf"sbp_[0-9a-f]{{32,}}|sb_secret_{_URL}{{20,}}"),
    Format("Neon", r"napi_[a-z0-9]{60,}"),
    Format("Aiven", rf"AVNS_{_URL}{{16,}}"),
    Format("MongoDB Atlas", rf"mdb_sa_sk_{_URL}{{30,}}"),
    Format("CockroachDB", rf"CCDB1_{_WORD}{{22}}_{_WORD}{{40}}"),
    Format("Adafruit IO", rf"aio_{_WORD}{{28}}\b", looks_random=True),
    Format("ClickHouse", r"4b1d[A-Za-z0-9]{38}\b", looks_random=True),
    Format("Airtable", r"pat[A-Za-z0-9]{14}\.[0-9a-f]{64}\b"),
    Format("Contentful", rf"CFPAT-{_URL}{{40,}}"),
    Format("MaxMind", r"[A-Za-z0-9]{6}_[A-Za-z0-9]{29}_mmk\b", "_mmk"),
    Format("Mapbox", rf"[ps]k\.eyJ{_URL}{{20,}}\.{_URL}{{20,}}"),
    Format("Private AI, PostHog", rf"ph[xs]_{_WORD}{{40,}}"),
    # -- watching
    Format("Grafana", r"gl(?:c|sa)_[A-Za-z0-9+/]{20}[\w/+=-]*|eyJrIjoi[A-Za-z0-9]{60,}={0,3}"),
    Format("Sentry", r"sntry[su]_[A-Za-z0-9]{20}[\w/+=-]*"),
    Format("Honeycomb", r"hc[abx]ik_[0-9a-z]{50,}"),
    Format("Axiom, LaunchDarkly", rf"(?:xa[ap]t|sdk|api)-{_UUID}"),
    Format("New Relic", r"NRAK-[0-9A-Z]{16,}|NRJS-[0-9a-f]{19}|NRII-[\w-]{32}"),
    Format("Dynatrace", r"dt0[a-z][0-9]{2}\.[A-Za-z0-9]{24}\.[A-Za-z0-9]{64}"),
    Format("ReadMe", r"rdme_[a-z0-9]{60,}"),
    Format("Postman", rf"PMAK-{_URL}{{30,}}"),
    # -- talk and mail
    Format("Slack", r"xox[a-z](?:\.xox[a-z])?-[\w-]{11,}|xapp-[\w-]{11,}"),
    Format("Slack webhook", r"hooks\.slack\.com/[a-z]{1,20}(?:/\w{1,20}){2,3}/\w{16,}"),
    Format("Discord webhook", rf"discord(?:app)?\.com/api/webhooks/[0-9]{{1,24}}/{_URL}{{16,}}"),
    Format(
        "Discord bot",
        rf"[MNO][A-Za-z0-9_-]{{23,27}}\.{_URL}{{6}}\.{_URL}{{27,40}}\b",
        rf"{_URL}{{3}}\.{_URL}{{6}}\.{_URL}{{27}}",
        looks_random=True,
    ),
    Format(
        "Teams webhook",
        rf"webhook\.office\.com/webhookb2/{_UUID}@{_UUID}/IncomingWebhook/[0-9a-f]{{32}}/"
        rf"{_UUID}",
    ),
    Format("Telegram", rf"[0-9]{{8,10}}:AA{_URL}{{32,}}", rf":AA{_URL}{{32}}"),
    Format("Twilio", r"(?:SK|AC)(?:[0-9a-f]{32}|[0-9A-F]{32})\b"),
    Format("SendGrid", rf"SG\.{_URL}{{16,64}}\.{_URL}{{16,}}"),
    Format("Sendinblue", r"x(?:key|smtp)sib-[0-9a-f]{64}-[A-Za-z0-9]{16}"),
    Format("Mailgun", r"(?:pub)?key-[0-9a-f]{32,}"),
    Format("Mailchimp", r"[0-9a-f]{32}-us[0-9]{1,2}\b", "[0-9a-f]-us[0-9]"),
    Format("Resend", r"re_[A-Za-z0-9]{8}_[A-Za-z0-9]{24}\b", looks_random=True),
    # -- work
    Format("Asana", r"[12]/[0-9]{13,20}(?:/[0-9]{13,20})?:[0-9a-f]{32}"),
    Format("Linear", r"lin_(?:api|oauth)_[A-Za-z0-9]{20,}"),
    Format("Notion", r"ntn_[A-Za-z0-9]{30,}|secret_[A-Za-z0-9]{32,}"),
    Format("Figma", rf"figd_{_URL}{{20,}}"),
    Format("Adobe", r"p8e-[A-Za-z0-9]{32}\b"),
    Format("Frame.io", r"fio-u-[\w=-]{60,}"),
    Format("Dropbox", r"sl\.[\w=-]{130,}"),
    Format("HubSpot", rf"pat-(?:na|eu|ap)[0-9]-{_UUID}"),
    Format("Typeform", r"tfp_[\w.=-]{50,}"),
    Format("ClickUp", r"pk_[0-9]{7,9}_[A-Z0-9]{32}"),
    Format("Cal.com", r"cal_(?:live|test)_[0-9a-f]{32}"),
    Format("Salesforce", r"00D[A-Za-z0-9]{12,15}![\w.]{80,}"),
    Format("Intra 42", r"s-s4t2(?:ud|af)-[0-9a-f]{64}"),
    Format("SettleMint", r"sm_(?:aat|pat|sat)_[A-Za-z0-9]{16}"),
    # -- money and shops
    Format("Stripe", r"[rs]k_(?:live|test|prod)_[A-Za-z0-9]{10,}|whsec_[A-Za-z0-9/+=]{20,}"),
    Format("Plaid", rf"access-(?:sandbox|development|production)-{_UUID}"),
    Format("Square", r"sq0[a-z]{3}-[\w-]{16,}"),
    Format("Square access", r"EAAA[\w-]{50,60}\b", looks_random=True),
    Format("Shopify", r"shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32,}"),
    Format("Shippo", r"shippo_(?:live|test)_[0-9a-fA-F]{40}"),
    Format("EasyPost", r"EZ[AT]K[A-Za-z0-9]{54}"),
    Format("Duffel", r"duffel_(?:test|live)_[\w=-]{40,}"),
    Format("Flutterwave", r"FLW(?:SECK|PUBK)(?:_TEST)?-[0-9a-h]{12,}(?:-X)?"),
    Format("Facebook", r"[0-9]{15,16}(?:\||%7[cC])[\w-]{27,40}", r"[0-9](?:\||%7[cC])[\w-]{27}"),
    Format("Facebook page", r"EAA[A-Z][A-Za-z0-9]{60,}\b", looks_random=True),
    Format("Braintree", r"access_token\$[a-z]{7,10}\$[0-9a-z]{16}\$[0-9a-f]{32}"),
    Format("Paddle, Polar", r"pdl_[a-z]{2,5}_apikey_\w{40,}|polar_[a-z]{2,4}_[A-Za-z0-9]{30,}"),
    Format("Amazon MWS", rf"amzn\.mws\.{_UUID}"),
    Format("SoftLayer", r"api\.softlayer\.com/soap/v3(?:\.1)?/[a-z0-9]{64}"),
    Format("JWT in base64", r"ZXlK(?:[a-zA-Z0-9+/]{100,})={0,2}"),
)


class PasswordFlag(NamedTuple):
    """How programs take a password as an argument, by a flag that means another thing elsewhere."""

    programs: str
    """A blank is anything between two words."""
    flags: str
    is_glued: bool = False
    """The password is the rest of the word, as in ``-pPASSWORD``."""
    is_apart: bool = True
    """It is the next word."""
    behind: str = ""
    """What stands before it in that word."""


PASSWORD_FLAGS: Final = (
    PasswordFlag(
        r"(?:mysql|mariadb)(?:-?(?:admin|check|dump|import|show|slap|binlog|pump|sh))?",
        "-p",
        is_glued=True,
        is_apart=False,  # the next word is a database
    ),
    PasswordFlag("7z[ar]?", "-p", is_glued=True, is_apart=False),
    PasswordFlag("sshpass", "-p", is_glued=True),
    PasswordFlag("unzip|zip|sqlcmd|bcp", "-P", is_glued=True),
    PasswordFlag("redis-cli", "-a|--pass"),
    PasswordFlag("mongo(?:sh|dump|restore|export|import|stat|top)?", "-p"),
    PasswordFlag(
        "(?:docker|podman|nerdctl|buildah|skopeo|crane|oras|oc|az|az acr|helm registry) login", "-p"
    ),
    PasswordFlag("ldap(?:search|add|modify|delete|passwd|whoami|compare)", "-w", is_glued=True),
    PasswordFlag("openssl", "-pass|-passin|-passout", behind="pass:"),
    PasswordFlag("openssl", "-k"),
    PasswordFlag("keytool|jarsigner", "-storepass|-keypass|-srcstorepass|-deststorepass"),
    PasswordFlag("https?|xh", "-a|--auth", behind=r"[^\s:'\"]{1,80}:"),
    PasswordFlag("smbclient|rpcclient", "-U", is_glued=True, behind=r"[^\s%'\"]{1,80}%"),
)

MADE_NAMES: Final = (
    r"(?:api|access|account|private|signing|encryption|shared|service|client|db|database|app)"
    r"[ _-]?key|credentials?|token"
)
"""A name with one of these in it, in any case, names what a machine made: no word, no number.

A tokenizer and a thing that is tokenised are none, but RE2 cannot say so.
"""

CHOSEN_NAMES: Final = (
    "secret|passw(?:or)?d|passphrase|creds|contribsys__com"
    "|(?:db|sql|user|admin|root|login|cloudant)[_-]?(?:pass|pwd?)"
)
"""Names of what somebody may have chosen: a word, too."""

CAPITAL_MADE: Final = "KEY"
CAPITAL_CHOSEN: Final = "_PWD|_PASS|_PAT|_AUTH|_DSN"
"""Such names too, in capitals only, as in names of variables."""

WEAK_NAMES: Final = "key|auth|access|oauth|sig|signature|sas|license|webhook|identity"
"""Names with such a word in them name a secret when the value looks like nothing else."""

SERVICES: Final = (
    *("adafruit", "adobe", "airtable", "algolia", "alibaba", "artifactory", "asana", "atlassian"),
    *("beamer", "bintray", "bitbucket", "bittrex", "cloudant", "cloudflare", "codecov", "cohere"),
    *("coinbase", "confluence", "confluent", "contentful", "datadog"),
    *("discord", "droneci", "dropbox", "etsy", "facebook", "fastly", "finicity", "finnhub"),
    *("flickr", "freshbooks", "gitlab_session", "gitter", "gocardless", "heroku", "hubspot"),
    *("ibm", "intercom", "jfrog", "jira", "kraken", "kucoin", "launchdarkly", "linear"),
    *("linkedin", "linked_in", "lob", "looker", "mailchimp", "mailgun", "mapbox", "mattermost"),
    *("meraki", "messagebird", "message_bird", "mistral", "netlify", "newrelic", "new_relic"),
    *("nytimes", "okta", "plaid", "private_ai", "privateai", "rapidapi", "sendbird"),
    *("sentry", "snyk", "softlayer", "sonar", "squarespace", "sumo", "telegram", "travis"),
    *("twilio", "twitch", "twitter", "typeform", "vault", "xray", "yandex", "zendesk"),
)
"""Names of services whose secrets have no known shape: what is random next to one is a secret."""

PUBLIC_NAMES: Final = (
    *("commit", "sha", "hash", "digest", "version", "revision", "release", "checksum", "etag"),
    *("integrity", "image", "build", "branch", "uuid", "path", "file", "dir", "url", "uri", "host"),
)
"""Names whose values are random and no secrets."""
