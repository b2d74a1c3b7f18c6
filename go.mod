module github.com/pellucid-mcp/pellucid

go 1.26.0

require (
	cel.dev/cel-go v0.33.2 // compiles, checks and evaluates the expressions of a policy, with their cost known before they run; instead of an expression language of our own
	filippo.io/age v1.3.2 // encrypts held bodies to their reviewers (X25519), in a format that other tools open; instead of JWE or OpenPGP, whose choices can be made wrongly
	github.com/alecthomas/kong v1.17.0 // the command line; instead of flag handling of our own
	github.com/aws/aws-sdk-go-v2 v1.47.7 // the official signer (SigV4) for Bedrock, as a classifier and as a provider of models, and nothing else of it; instead of a signer of our own, or the client of the service, 8.5 MB of binary
	github.com/chromedp/cdproto v0.159.0 // test only: what the browser says of the pages of the console
	github.com/chromedp/chromedp v0.22.1 // test only: a real browser at the pages of the console and of a login
	github.com/coreos/go-oidc/v3 v3.21.0 // signs people in to the console by OpenID Connect: metadata, keys and checks of an id_token; instead of checks of our own, each of which can be forgotten
	github.com/failsafe-go/failsafe-go v0.9.8 // retries and circuit breakers of requests to models and classifiers; instead of the SDKs of the providers, whose retries are not visible
	github.com/fsnotify/fsnotify v1.10.1 // tells when a file is replaced; instead of polling alone
	github.com/go-jose/go-jose/v4 v4.1.8 // parses JWKs and checks JWS signatures; it has no dependencies, and the caller gives the algorithms
	github.com/go-json-experiment/json v0.0.0-20260820222146-c27c302e5fc3 // typed strict decoding, RFC 8785; instead of encoding/json, which repairs silently
	github.com/goccy/go-yaml v1.19.2 // lexer and syntax tree of the configuration; its strict decoding stops at the first error, so the reader is ours
	github.com/godbus/dbus/v5 v5.2.2 // tells a session without a Secret Service from one whose keychain is locked; go-keyring needs it anyway
	github.com/google/go-cmp v0.7.0 // test only: differences between values
	github.com/gowebpki/jcs v1.0.1 // test only: a second implementation of RFC 8785 to compare with
	github.com/jackc/pgx/v5 v5.12.0 // Postgres
	github.com/modelcontextprotocol/go-sdk v1.8.0 // the end point of the grounding adapter, the client of conform, the demonstration server, and clients in tests
	github.com/mr-tron/base58 v1.3.0 // multibase keys and signatures
	github.com/pelletier/go-toml/v2 v2.4.3 // the positions of what stands in a client's TOML, so that protect edits single values; its decoder is not used but in tests; instead of a parser of our own, or one that writes the whole file anew
	github.com/pressly/goose/v3 v3.28.0 // migrations of both stores
	github.com/prometheus/client_golang v1.24.1 // metrics in the form that every collector reads
	github.com/prometheus/otlptranslator v1.0.0 // metrics under the names that OpenTelemetry gives them in Prometheus
	github.com/rogpeppe/go-internal v1.16.0 // test only: scripts of the command line (testscript)
	github.com/santhosh-tekuri/jsonschema/v6 v6.0.3 // evaluates outputSchema, behind limits of ours; instead of a validator that mutual references can hang
	github.com/zalando/go-keyring v0.2.8 // the key of logins in the keychain of the system, without cgo; instead of three clients of our own
	go.opentelemetry.io/otel v1.47.0 // metrics, with the names that OpenTelemetry gives to those of MCP
	go.opentelemetry.io/otel/exporters/prometheus v0.69.0 // metrics of OpenTelemetry for Prometheus
	go.opentelemetry.io/otel/metric v1.47.0 // metrics
	go.opentelemetry.io/otel/sdk/metric v1.47.0 // metrics
	go.uber.org/goleak v1.3.0 // test only: goroutines that a test leaves behind
	go.yaml.in/yaml/v3 v3.0.5 // the positions of what stands in a client's YAML, for the same; goccy/go-yaml counts lines and characters wrongly behind comments and CRLF; the rules of a policy (CEL) need this one already
	golang.org/x/mod v0.42.0 // signed notes and proofs of the evidence log (sumdb/note, sumdb/tlog); instead of Merkle proofs of our own, or Trillian, which needs servers
	golang.org/x/net v0.62.0 // test only: HTML, IDNA and HTTP/2 to compare with
	golang.org/x/oauth2 v0.37.0 // the code flow with PKCE, which go-oidc leaves to it
	golang.org/x/sys v0.49.0 // process groups and the job objects of Windows, so that no child outlives its parent; whether standard output is read; and the clock of leases, which goes on while a machine is suspended
	golang.org/x/text v0.43.0 // the character sets of blobs; never in the path of a hash
	golang.org/x/time v0.15.0 // token buckets
	modernc.org/sqlite v1.60.1 // SQLite without cgo
	pgregory.net/rapid v1.3.0 // test only: properties
)

require (
	cel.dev/expr v0.25.1 // indirect
	filippo.io/hpke v0.4.0 // indirect
	github.com/antlr4-go/antlr/v4 v4.13.1 // indirect
	github.com/aws/smithy-go v1.28.8 // indirect
	github.com/beorn7/perks v1.0.1 // indirect
	github.com/bits-and-blooms/bitset v1.24.4 // indirect
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/danieljoos/wincred v1.2.3 // indirect
	github.com/dustin/go-humanize v1.0.1 // indirect
	github.com/go-logr/logr v1.4.4 // indirect
	github.com/go-logr/stdr v1.2.2 // indirect
	github.com/google/jsonschema-go v0.4.3 // indirect
	github.com/google/uuid v1.6.0 // indirect
	github.com/jackc/pgpassfile v1.0.0 // indirect
	github.com/jackc/pgservicefile v0.0.0-20240606120523-5a60cdf6a761 // indirect
	github.com/jackc/puddle/v2 v2.2.3 // indirect
	github.com/klauspost/compress v1.20.3 // indirect
	github.com/mattn/go-isatty v0.0.24 // indirect
	github.com/mfridman/interpolate v0.0.2 // indirect
	github.com/munnerz/goautoneg v0.0.0-20191010083416-a7dc8b61c822 // indirect
	github.com/ncruces/go-strftime v1.0.0 // indirect
	github.com/prometheus/client_model v0.6.3 // indirect
	github.com/prometheus/common v0.72.0 // indirect
	github.com/prometheus/procfs v0.22.0 // indirect
	github.com/remyoudompheng/bigfft v0.0.0-20230129092748-24d4a6f8daec // indirect
	github.com/segmentio/asm v1.2.1 // indirect
	github.com/segmentio/encoding v0.5.4 // indirect
	github.com/sethvargo/go-retry v0.4.0 // indirect
	github.com/yosida95/uritemplate/v3 v3.0.2 // indirect
	go.opentelemetry.io/auto/sdk v1.2.1 // indirect
	go.opentelemetry.io/otel/log v1.47.0 // indirect
	go.opentelemetry.io/otel/sdk v1.47.0 // indirect
	go.opentelemetry.io/otel/trace v1.47.0 // indirect
	go.uber.org/multierr v1.11.0 // indirect
	golang.org/x/crypto v0.58.0 // indirect
	golang.org/x/exp v0.0.0-20260824195058-e88cd73687aa // indirect
	golang.org/x/sync v0.24.0 // indirect
	golang.org/x/tools v0.51.0 // indirect
	google.golang.org/genproto/googleapis/api v0.0.0-20260720211330-0afa2a65878a // indirect
	google.golang.org/genproto/googleapis/rpc v0.0.0-20260928230214-8a89bd6388cc // indirect
	google.golang.org/protobuf v1.36.12 // indirect
	modernc.org/libc v1.77.1 // indirect
	modernc.org/mathutil v1.7.1 // indirect
	modernc.org/memory v1.12.1 // indirect
)
