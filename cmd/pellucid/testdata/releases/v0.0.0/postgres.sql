SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;
SET default_tablespace = '';
SET default_table_access_method = heap;
CREATE TABLE public.approvals (
    id text NOT NULL COLLATE pg_catalog."C",
    call bytea NOT NULL,
    principal text NOT NULL COLLATE pg_catalog."C",
    tool text NOT NULL COLLATE pg_catalog."C",
    item text NOT NULL COLLATE pg_catalog."C",
    since text NOT NULL COLLATE pg_catalog."C",
    until text NOT NULL COLLATE pg_catalog."C",
    approver text NOT NULL COLLATE pg_catalog."C",
    revoked text NOT NULL COLLATE pg_catalog."C",
    revoker text NOT NULL COLLATE pg_catalog."C",
    uses bigint NOT NULL,
    used text NOT NULL COLLATE pg_catalog."C"
);
CREATE TABLE public.attestations (
    id bigint NOT NULL,
    hash bytea NOT NULL,
    version text NOT NULL COLLATE pg_catalog."C",
    dedup bytea NOT NULL,
    skeleton bytea NOT NULL,
    iri text NOT NULL COLLATE pg_catalog."C",
    iri_key bytea NOT NULL,
    validator text NOT NULL COLLATE pg_catalog."C",
    claim bigint NOT NULL,
    domain text NOT NULL COLLATE pg_catalog."C",
    verdict text NOT NULL COLLATE pg_catalog."C",
    issued text NOT NULL COLLATE pg_catalog."C",
    expires text NOT NULL COLLATE pg_catalog."C",
    status integer NOT NULL,
    superseded_by bytea,
    depends integer NOT NULL,
    projection bytea NOT NULL
);
CREATE TABLE public.blocks (
    id text NOT NULL COLLATE pg_catalog."C",
    server text NOT NULL COLLATE pg_catalog."C",
    tool text NOT NULL COLLATE pg_catalog."C",
    text bytea NOT NULL,
    evidence text NOT NULL COLLATE pg_catalog."C",
    severity bigint NOT NULL,
    since text NOT NULL COLLATE pg_catalog."C",
    until text NOT NULL COLLATE pg_catalog."C",
    lifted text NOT NULL COLLATE pg_catalog."C",
    lifter text NOT NULL COLLATE pg_catalog."C"
);
CREATE TABLE public.captures (
    id text NOT NULL COLLATE pg_catalog."C",
    principal bytea NOT NULL,
    at text NOT NULL COLLATE pg_catalog."C",
    until text NOT NULL COLLATE pg_catalog."C",
    size bigint NOT NULL,
    sealed bytea NOT NULL
);
CREATE TABLE public.claim_domains (
    claim bigint NOT NULL,
    domain text NOT NULL COLLATE pg_catalog."C"
);
CREATE TABLE public.claims (
    id bigint NOT NULL,
    hash bytea NOT NULL,
    text text NOT NULL COLLATE pg_catalog."C",
    language text NOT NULL COLLATE pg_catalog."C",
    group_id text NOT NULL COLLATE pg_catalog."C",
    topic text NOT NULL COLLATE pg_catalog."C",
    live integer NOT NULL,
    total integer NOT NULL
);
CREATE TABLE public.decision_groups (
    id bigint NOT NULL,
    kind text NOT NULL COLLATE pg_catalog."C",
    server text NOT NULL COLLATE pg_catalog."C",
    tool text NOT NULL COLLATE pg_catalog."C",
    verdict text NOT NULL COLLATE pg_catalog."C"
);
CREATE TABLE public.decision_index (
    one integer NOT NULL,
    size bigint NOT NULL,
    keys text NOT NULL COLLATE pg_catalog."C",
    CONSTRAINT decision_index_one_check CHECK ((one = 1))
);
CREATE TABLE public.decision_keys (
    key bigint NOT NULL,
    at bigint NOT NULL,
    idx bigint NOT NULL,
    grp bigint NOT NULL
);
CREATE TABLE public.decisions (
    idx bigint NOT NULL,
    at bigint NOT NULL,
    grp bigint NOT NULL,
    id bytea NOT NULL,
    about bytea NOT NULL,
    reason text NOT NULL COLLATE pg_catalog."C",
    codes text NOT NULL COLLATE pg_catalog."C"
);
CREATE TABLE public.dependencies (
    attestation bigint NOT NULL,
    "position" integer NOT NULL,
    target bytea NOT NULL,
    iri text NOT NULL COLLATE pg_catalog."C"
);
CREATE TABLE public.events (
    hash bytea NOT NULL,
    kind integer NOT NULL,
    target bytea NOT NULL,
    iri text NOT NULL COLLATE pg_catalog."C",
    at text NOT NULL COLLATE pg_catalog."C",
    projection bytea NOT NULL,
    original bytea NOT NULL
);
CREATE TABLE public.exceptions (
    id text NOT NULL COLLATE pg_catalog."C",
    server text NOT NULL COLLATE pg_catalog."C",
    tool text NOT NULL COLLATE pg_catalog."C",
    code text NOT NULL COLLATE pg_catalog."C",
    digest bytea NOT NULL,
    since text NOT NULL COLLATE pg_catalog."C",
    until text NOT NULL COLLATE pg_catalog."C",
    why text NOT NULL COLLATE pg_catalog."C",
    granter text NOT NULL COLLATE pg_catalog."C",
    revoked text NOT NULL COLLATE pg_catalog."C",
    revoker text NOT NULL COLLATE pg_catalog."C",
    second text DEFAULT ''::text NOT NULL COLLATE pg_catalog."C",
    keep bigint DEFAULT 0 NOT NULL
);
CREATE TABLE public.feed (
    seq bigint NOT NULL,
    event integer NOT NULL,
    hash bytea NOT NULL
);
CREATE TABLE public.goose_db_version (
    id integer NOT NULL,
    version_id bigint NOT NULL,
    is_applied boolean NOT NULL,
    tstamp timestamp without time zone DEFAULT now() NOT NULL
);
ALTER TABLE public.goose_db_version ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.goose_db_version_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.held (
    id text NOT NULL COLLATE pg_catalog."C",
    server text NOT NULL COLLATE pg_catalog."C",
    tool text NOT NULL COLLATE pg_catalog."C",
    principal text NOT NULL COLLATE pg_catalog."C",
    rule text NOT NULL COLLATE pg_catalog."C",
    code text NOT NULL COLLATE pg_catalog."C",
    call bytea NOT NULL,
    digest bytea NOT NULL,
    octets bigint NOT NULL,
    body bytea,
    at text NOT NULL COLLATE pg_catalog."C",
    until text NOT NULL COLLATE pg_catalog."C",
    state text NOT NULL COLLATE pg_catalog."C",
    decided text NOT NULL COLLATE pg_catalog."C",
    decider text NOT NULL COLLATE pg_catalog."C",
    found text DEFAULT ''::text NOT NULL COLLATE pg_catalog."C",
    hidden text DEFAULT ''::text NOT NULL COLLATE pg_catalog."C",
    question bytea,
    people bigint DEFAULT 1 NOT NULL,
    proposed text DEFAULT ''::text NOT NULL COLLATE pg_catalog."C",
    proposer text DEFAULT ''::text NOT NULL COLLATE pg_catalog."C"
);
CREATE TABLE public.leases (
    name text NOT NULL COLLATE pg_catalog."C",
    holder text NOT NULL COLLATE pg_catalog."C",
    fence bigint NOT NULL,
    beat bigint NOT NULL,
    address text NOT NULL COLLATE pg_catalog."C"
);
CREATE TABLE public.ledger_chain (
    writer text NOT NULL COLLATE pg_catalog."C",
    wseq bigint NOT NULL,
    idx bigint NOT NULL,
    mac bytea NOT NULL
);
CREATE TABLE public.ledger_cosigned (
    one integer NOT NULL,
    size bigint NOT NULL,
    checkpoint bytea NOT NULL,
    at text NOT NULL COLLATE pg_catalog."C",
    CONSTRAINT ledger_cosigned_one_check CHECK ((one = 1))
);
CREATE TABLE public.ledger_entries (
    idx bigint NOT NULL,
    id bytea NOT NULL,
    at text NOT NULL COLLATE pg_catalog."C",
    server text NOT NULL COLLATE pg_catalog."C",
    kind text NOT NULL COLLATE pg_catalog."C",
    opening bytea NOT NULL
);
CREATE TABLE public.ledger_head (
    one integer NOT NULL,
    origin text NOT NULL COLLATE pg_catalog."C",
    signer text NOT NULL COLLATE pg_catalog."C",
    size bigint NOT NULL,
    checkpoint bytea NOT NULL,
    CONSTRAINT ledger_head_one_check CHECK ((one = 1))
);
CREATE TABLE public.ledger_leaves (
    idx bigint NOT NULL,
    envelope bytea NOT NULL
);
CREATE TABLE public.ledger_pending (
    seq bigint NOT NULL,
    record bytea NOT NULL,
    writer text DEFAULT ''::text NOT NULL COLLATE pg_catalog."C",
    wseq bigint DEFAULT 0 NOT NULL,
    prev bytea DEFAULT '\x'::bytea NOT NULL,
    mac bytea DEFAULT '\x'::bytea NOT NULL
);
ALTER TABLE public.ledger_pending ALTER COLUMN seq ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.ledger_pending_seq_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.ledger_stop (
    one integer NOT NULL,
    reason text NOT NULL COLLATE pg_catalog."C",
    size bigint NOT NULL,
    checkpoint bytea NOT NULL,
    at text NOT NULL COLLATE pg_catalog."C",
    CONSTRAINT ledger_stop_one_check CHECK ((one = 1))
);
CREATE TABLE public.ledger_tiles (
    level integer NOT NULL,
    n bigint NOT NULL,
    hashes bytea NOT NULL
);
CREATE TABLE public.ledger_writers (
    writer text NOT NULL COLLATE pg_catalog."C",
    wseq bigint NOT NULL,
    tag bytea NOT NULL
);
CREATE TABLE public.originals (
    attestation bigint NOT NULL,
    original bytea NOT NULL
);
CREATE TABLE public.pins (
    server text NOT NULL COLLATE pg_catalog."C",
    version bigint NOT NULL,
    record bytea
);
CREATE TABLE public.postings (
    token text NOT NULL COLLATE pg_catalog."C",
    block bigint NOT NULL,
    claims bytea NOT NULL
);
CREATE TABLE public.retractions (
    target bytea NOT NULL
);
CREATE TABLE public.schema_steps (
    version bigint NOT NULL,
    oldest bigint NOT NULL
);
CREATE TABLE public.sessions (
    id text NOT NULL COLLATE pg_catalog."C",
    server text NOT NULL COLLATE pg_catalog."C",
    owner text NOT NULL COLLATE pg_catalog."C",
    fence bigint NOT NULL,
    principal bytea NOT NULL,
    state bytea NOT NULL,
    ended bigint NOT NULL,
    seen text NOT NULL COLLATE pg_catalog."C",
    until text NOT NULL COLLATE pg_catalog."C"
);
CREATE TABLE public.signin_links (
    id bytea NOT NULL,
    person text NOT NULL COLLATE pg_catalog."C",
    until text NOT NULL COLLATE pg_catalog."C"
);
CREATE TABLE public.signins (
    id bytea NOT NULL,
    name text NOT NULL COLLATE pg_catalog."C",
    person text NOT NULL COLLATE pg_catalog."C",
    scopes text NOT NULL COLLATE pg_catalog."C",
    how text NOT NULL COLLATE pg_catalog."C",
    began text NOT NULL COLLATE pg_catalog."C",
    seen text NOT NULL COLLATE pg_catalog."C",
    until text NOT NULL COLLATE pg_catalog."C",
    source bytea DEFAULT '\x'::bytea NOT NULL,
    ends text DEFAULT ''::text NOT NULL COLLATE pg_catalog."C"
);
CREATE TABLE public.tasks (
    task bytea NOT NULL,
    tool bytea NOT NULL,
    until text NOT NULL COLLATE pg_catalog."C"
);
CREATE TABLE public.tokens (
    token text NOT NULL COLLATE pg_catalog."C",
    claims integer NOT NULL
);
CREATE TABLE public.trust_scores (
    options text NOT NULL COLLATE pg_catalog."C",
    size bigint NOT NULL,
    snapshot bytea NOT NULL
);
CREATE TABLE public.verdicts (
    digest bytea NOT NULL,
    entry bytea NOT NULL
);
CREATE TABLE public.webhooks (
    id text NOT NULL COLLATE pg_catalog."C",
    receiver text NOT NULL COLLATE pg_catalog."C",
    event text NOT NULL COLLATE pg_catalog."C",
    body bytea,
    at text NOT NULL COLLATE pg_catalog."C",
    due text NOT NULL COLLATE pg_catalog."C",
    tries bigint NOT NULL,
    failure text NOT NULL COLLATE pg_catalog."C",
    given_up text NOT NULL COLLATE pg_catalog."C"
);
INSERT INTO public.decision_groups VALUES (1, 'key-installed', '', '', '');
INSERT INTO public.decision_groups VALUES (2, 'message', 'demo', 'whisper', 'withheld');
INSERT INTO public.decision_groups VALUES (3, 'result-held', 'demo', 'whisper', '');
INSERT INTO public.decision_index VALUES (1, 3, 'f26d1b0b');
INSERT INTO public.decision_keys VALUES (-8563858561867801454, 1795872696116160, 2, 2);
INSERT INTO public.decision_keys VALUES (-6590759675385227771, 1795872696116160, 2, 2);
INSERT INTO public.decision_keys VALUES (-6590759675385227771, 1795872696116502, 1, 3);
INSERT INTO public.decision_keys VALUES (-5276531698159488249, 1795872696116502, 1, 3);
INSERT INTO public.decision_keys VALUES (-3537940276957575763, 1795872696116160, 2, 2);
INSERT INTO public.decision_keys VALUES (-3537940276957575763, 1795872696116502, 1, 3);
INSERT INTO public.decision_keys VALUES (-2049000369181782223, 1795872696116502, 1, 3);
INSERT INTO public.decisions VALUES (0, 1795872696148593, 1, '\xdd2ed6c6c5839370a5ae76c5ecfa1a9a', '\x', '', '');
INSERT INTO public.decisions VALUES (1, 1795872696116502, 3, '\xdbd350010aab48b095e1b877248ab919', '\x13b3215f56fd992e643692bb02329956', 'hidden-tag', 'hidden-tag 1');
INSERT INTO public.decisions VALUES (2, 1795872696116160, 2, '\x13b3215f56fd992e643692bb02329956', '\x', 'hidden-tag', 'hidden-bidi 1 hidden-tag 1');
INSERT INTO public.goose_db_version VALUES (1, 0, true, '2026-11-28 13:31:37.11078');
INSERT INTO public.goose_db_version VALUES (2, 100, true, '2026-11-28 13:31:37.11442');
INSERT INTO public.goose_db_version VALUES (3, 102, true, '2026-11-28 13:31:37.151861');
INSERT INTO public.goose_db_version VALUES (4, 105, true, '2026-11-28 13:31:37.153474');
INSERT INTO public.held VALUES ('13b3215f56fd992e643692bb02329956', 'demo', 'whisper', '', 'finding', 'hidden-tag', '\x59c0cfd72aba50edde96386a7c4abbe1acfe45fb40368324c0539722dbb72ca6', '\x22baa5c0325e170bdf6c14e2234cba3592de6ee789859f1613aa04365be06089', 81, '\x7b22636f6e74656e74223a5b7b2274797065223a2274657874222c2274657874223a226265666f7265f3a081b3f3a081a1f3a081b9f3a080a0f3a081b9f3a081a5f3a081b3e280ae6166746572227d5d7d', '2026-11-28T13:31:36.116502134', '2026-11-29T13:31:36.116502134', 'held', '', '', '{"findings":[{"place":"content/0/text","code":"hidden-tag","count":1,"spans":[{"start":6,"end":34}]},{"place":"content/0/text","code":"hidden-bidi","count":1,"spans":[{"start":34,"end":37}]}]}', 'say yes', NULL, 1, '', '');
INSERT INTO public.leases VALUES ('log', '', 1, 3, '');
INSERT INTO public.ledger_chain VALUES ('520bdfd8-1f964426e9bfe859', 1, 1, '\x5a675bc91f251ce65cec9825aaff495ee2869d927acc097a17430389c972e305');
INSERT INTO public.ledger_chain VALUES ('520bdfd8-f366e285fc2ee449', 1, 2, '\xc6eaeef6d1277d095f3d21e815633a7ed789a27c0809d77b1d325b77899210ea');
INSERT INTO public.ledger_entries VALUES (0, '\xdd2ed6c6c5839370a5ae76c5ecfa1a9a', '2026-11-28T13:31:36.148593272', '', 'key-installed', '\x7b2264696765737473223a7b226b6579223a2237646463383233303362383664613038346135323031343938303561383131353339346533333536363830613031383731393235646465343762663939633431227d2c226964223a226464326564366336633538333933373061356165373663356563666131613961222c2273616c74223a2262623135396662363433383739653634343937663761363035616335396533343134393339333234323733393261393362663832613464383565393532643665227d');
INSERT INTO public.ledger_entries VALUES (1, '\xdbd350010aab48b095e1b877248ab919', '2026-11-28T13:31:36.116502134', 'demo', 'result-held', '\x7b2264696765737473223a7b2263616c6c223a2235396330636664373261626135306564646539363338366137633461626265316163666534356662343033363833323463303533393732326462623732636136222c2268656c64223a2232326261613563303332356531373062646636633134653232333463626133353932646536656537383938353966313631336161303433363562653036303839227d2c226964223a226462643335303031306161623438623039356531623837373234386162393139222c2273616c74223a2231366565383933396335653763336661323165653563636438623061366232613936656364343734346136636139656438616232633861356531356564643865227d');
INSERT INTO public.ledger_entries VALUES (2, '\x13b3215f56fd992e643692bb02329956', '2026-11-28T13:31:36.116160073', 'demo', 'message', '\x7b2264696765737473223a7b227265636569766564223a2232326261613563303332356531373062646636633134653232333463626133353932646536656537383938353966313631336161303433363562653036303839227d2c226964223a223133623332313566353666643939326536343336393262623032333239393536222c2273616c74223a2234306663353339363637663036636466383136616134383461666136383830336264386636373831383736336536386133306239386164323363323933373332227d');
INSERT INTO public.ledger_head VALUES (1, 'pellucid/ee49b25f56ac562f', 'pellucid/ee49b25f56ac562f+4f56c252', 3, '\x70656c6c756369642f656534396232356635366163353632660a330a535848747a716c663871694c5568724e6f705a384c306465776747426c62466f4f38363863736a664672513d0a0ae280942070656c6c756369642f65653439623235663536616335363266205431624355764b6c5635426b6562697657324474776d476d35372b78634e72596273354c57616a3763703370795a3761366e797456646a6872557344722f46356a376959614941364e692b4e456c32537476576b3770756664676b3d0a');
INSERT INTO public.ledger_leaves VALUES (0, '\x7b227061796c6f6164223a2265794a6664486c775a534936496d68306448427a4f69387661573474644739306279357062793954644746305a57316c626e5176646a45694c434a77636d566b61574e68644755694f6e7369615751694f694a6b5a444a6c5a445a6a4e6d4d314f444d354d7a6377595456685a546332597a566c59325a684d57453559534973496d746c65534936496e426c6247783159326c6b4c32566c4e446c694d6a566d4e545a68597a55324d6d59724e4759314e6d4d794e54497251565a4d53546851617a4271616b357061325a59626a45345a6e5a554e58687252465a78546b3479636b744f4e564a56616d464952573930614767694c434a726157356b496a6f69613256354c576c75633352686247786c5a434973496e5270625755694f6949794d4449324c5445784c5449345644457a4f6a4d784f6a4d324c6a45304f4455354d7a49334d6c6f696653776963484a6c5a476c6a5958526c56486c775a534936496d68306448427a4f6938765a326c30614856694c6d4e76625339775a57787364574e705a43317459334176634756736248566a615751765a585a705a47567559325576646a41754d534973496e4e31596d706c593351694f6c7437496d52705a32567a6443493665794a6f6257466a553268684d6a5532496a6f694e6d49345a5759305a5751774e6a6b304e4459794d6a6734596d45325a545133597a55344d3245774d545a6b4d6d51344d6a637a5a4445334d324a69597a646c597a6c6b4e6a6c6d5a6d4d785a4445794d6d4a6c59534a394c434a755957316c496a6f6961325635496e316466513d3d222c227061796c6f616454797065223a226170706c69636174696f6e2f766e642e696e2d746f746f2b6a736f6e222c227369676e617475726573223a5b7b226b65796964223a2270656c6c756369642f656534396232356635366163353632662b3466353663323532222c22736967223a22565550636c394f52746659726433654e6a31577a534b665156747568496f7539727938794f6a63496d554c6f6170334159376b704171542b4e72336a3472444b722b6d63325a68764f7a5a2f757163314b76436a44673d3d227d5d7d');
INSERT INTO public.ledger_leaves VALUES (1, '\x7b227061796c6f6164223a2265794a6664486c775a534936496d68306448427a4f69387661573474644739306279357062793954644746305a57316c626e5176646a45694c434a77636d566b61574e68644755694f6e7369615751694f694a6b596d517a4e5441774d544268595749304f4749774f54566c4d5749344e7a63794e446868596a6b784f534973496d7470626d51694f694a795a584e3162485174614756735a434973496d353162574a6c636e4d694f6e7369596e6c305a584d694f6a67784c434a775a573977624755694f6a4573496e567564476c73496a6f784e7a6b314f5455354d446b3266537769623259694f6949784d32497a4d6a45315a6a55325a6d51354f544a6c4e6a517a4e6a6b79596d49774d6a4d794f546b314e694973496e4a6c59584e7662694936496d68705a47526c62693130595763694c434a796457786c496a6f695a6d6c755a476c755a794973496e4e6c636e5a6c63694936496d526c625738694c434a306157316c496a6f694d6a41794e6930784d5330794f4651784d7a6f7a4d546f7a4e6934784d5459314d4449784d7a5261496977696447397662434936496e646f61584e775a5849696653776963484a6c5a476c6a5958526c56486c775a534936496d68306448427a4f6938765a326c30614856694c6d4e76625339775a57787364574e705a43317459334176634756736248566a615751765a585a705a47567559325576646a41754d534973496e4e31596d706c593351694f6c7437496d52705a32567a6443493665794a6f6257466a553268684d6a5532496a6f694e6d46684e4445794e445a684e6d466b5a6d4e684e546b324e6a41304e5449794d7a55345a444d344d6d45794f575a6a4f446b344e4751304f5455324f575a6d5a544d31597a6c6a4e474a6d4f4756685a57597a59694a394c434a755957316c496a6f695932467362434a394c4873695a476c6e5a584e30496a7037496d687459574e54614745794e5459694f694a6c5a574a685a544a694d4464694d325669593255344e574a6a4d44526a4e6d51794e4441324d5441794f474a6a4d5449334e6a67774f5759775a6a68694d444d784d6d4d3359325579596d4a695a6a5a6c4e444e6c496e3073496d3568625755694f694a6f5a57786b496e316466513d3d222c227061796c6f616454797065223a226170706c69636174696f6e2f766e642e696e2d746f746f2b6a736f6e222c227369676e617475726573223a5b7b226b65796964223a2270656c6c756369642f656534396232356635366163353632662b3466353663323532222c22736967223a2258427071775a2f30506e34726973775a4e30477831665a3735584c4b61786845594e39774b58676f73436d616b355378544636326b6549374234696c5a6f31684b32767842324a37794f57442f6170395162643244773d3d227d5d7d');
INSERT INTO public.ledger_leaves VALUES (2, '\x7b227061796c6f6164223a2265794a6664486c775a534936496d68306448427a4f69387661573474644739306279357062793954644746305a57316c626e5176646a45694c434a77636d566b61574e68644755694f6e73695a6d6c755a476c755a334d694f6e736961476c6b5a4756754c574a705a476b694f6a4573496d68705a47526c62693130595763694f6a46394c434a705a434936496a457a596a4d794d54566d4e545a6d5a446b354d6d55324e444d324f544a69596a41794d7a49354f545532496977696157357a6347566a6447566b496a6f794c434a726157356b496a6f696257567a6332466e5a534973496d316c644768765a434936496e52766232787a4c324e68624777694c434a75645731695a584a7a496a7037496e527964584e304f6d68705a47526c626931745a584e7a5957646c496a6f784f4459314d5459324e6a4d774d5467794d7a49316653776963484a765a6d6c735a534936496d5a686158526f5a6e567349697769636d566863323975496a6f6961476c6b5a4756754c5852685a794973496e4e6c636e5a6c63694936496d526c625738694c434a7a614746775a534936496e4a6c6333567364434973496e5270625755694f6949794d4449324c5445784c5449345644457a4f6a4d784f6a4d324c6a45784e6a45324d4441334d316f694c434a3062323973496a6f69643268706333426c63694973496e5a6c636d5270593351694f694a336158526f614756735a434973496e5a6c636e4e706232357a496a7037496e4e68626d6c3059585270623234694f6949774c6a51694c434a31626d6c6a6232526c496a6f694d5455754d433477496e3073496e64706447686f5a57786b496a7037496d68705a47526c62693130595763694f6a46396653776963484a6c5a476c6a5958526c56486c775a534936496d68306448427a4f6938765a326c30614856694c6d4e76625339775a57787364574e705a43317459334176634756736248566a615751765a585a705a47567559325576646a41754d534973496e4e31596d706c593351694f6c7437496d52705a32567a6443493665794a6f6257466a553268684d6a5532496a6f694e7a4a694d4464684f5755305a5455345954686a4d6a5a694d6a51314d6d4e6a5a5451784d5459315a4756684e444d7a4d4755784f5455304d6a51354d6d59784e7a686b4e4755304f57553359575134596a6b354d794a394c434a755957316c496a6f69636d566a5a576c325a57516966563139222c227061796c6f616454797065223a226170706c69636174696f6e2f766e642e696e2d746f746f2b6a736f6e222c227369676e617475726573223a5b7b226b65796964223a2270656c6c756369642f656534396232356635366163353632662b3466353663323532222c22736967223a226130494f325a714956432f6c772b58647655687a2f74662b674e6e6636552f44346868547433486b39576f4747437667616e693345574d4d502f6e646157465076495a2b356f565977502b3039386767434d4f4344413d3d227d5d7d');
INSERT INTO public.ledger_tiles VALUES (0, 0, '\x0cf0d30be4be272f1ff0efced8ff6ca1d9d4401e7314661e20bd363a4619a9f6998204d25645a782d776d310dab7c9285095c2719e5be80b76a9fc593a3b1348db4021373bd2e82eea817e0321f416df6701bc60fb1f03592803f52e8c05b016');
INSERT INTO public.ledger_writers VALUES ('520bdfd8-1f964426e9bfe859', 1, '\x310c8fbb039956448dc4548654216399a7d7ed2cb534ca5845bc15e87a8dae84');
INSERT INTO public.ledger_writers VALUES ('520bdfd8-f366e285fc2ee449', 1, '\x7bf4cddd626b146887e96e2a544ff84cf0da7353b1237d98d5feaa046baff18f');
INSERT INTO public.schema_steps VALUES (100, 100);
INSERT INTO public.schema_steps VALUES (102, 100);
INSERT INTO public.schema_steps VALUES (105, 105);
SELECT pg_catalog.setval('public.goose_db_version_id_seq', 4, true);
SELECT pg_catalog.setval('public.ledger_pending_seq_seq', 1, false);
ALTER TABLE ONLY public.approvals
    ADD CONSTRAINT approvals_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.attestations
    ADD CONSTRAINT attestations_hash_key UNIQUE (hash);
ALTER TABLE ONLY public.attestations
    ADD CONSTRAINT attestations_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.blocks
    ADD CONSTRAINT blocks_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.captures
    ADD CONSTRAINT captures_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.claim_domains
    ADD CONSTRAINT claim_domains_pkey PRIMARY KEY (claim, domain);
ALTER TABLE ONLY public.claims
    ADD CONSTRAINT claims_hash_key UNIQUE (hash);
ALTER TABLE ONLY public.claims
    ADD CONSTRAINT claims_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.decision_groups
    ADD CONSTRAINT decision_groups_kind_server_tool_verdict_key UNIQUE (kind, server, tool, verdict);
ALTER TABLE ONLY public.decision_groups
    ADD CONSTRAINT decision_groups_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.decision_index
    ADD CONSTRAINT decision_index_pkey PRIMARY KEY (one);
ALTER TABLE ONLY public.decision_keys
    ADD CONSTRAINT decision_keys_pkey PRIMARY KEY (key, at, idx) INCLUDE (grp);
ALTER TABLE ONLY public.decisions
    ADD CONSTRAINT decisions_pkey PRIMARY KEY (idx);
ALTER TABLE ONLY public.dependencies
    ADD CONSTRAINT dependencies_pkey PRIMARY KEY (attestation, "position");
ALTER TABLE ONLY public.events
    ADD CONSTRAINT events_pkey PRIMARY KEY (hash);
ALTER TABLE ONLY public.exceptions
    ADD CONSTRAINT exceptions_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.feed
    ADD CONSTRAINT feed_pkey PRIMARY KEY (seq);
ALTER TABLE ONLY public.goose_db_version
    ADD CONSTRAINT goose_db_version_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.held
    ADD CONSTRAINT held_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.leases
    ADD CONSTRAINT leases_pkey PRIMARY KEY (name);
ALTER TABLE ONLY public.ledger_chain
    ADD CONSTRAINT ledger_chain_pkey PRIMARY KEY (writer, wseq);
ALTER TABLE ONLY public.ledger_cosigned
    ADD CONSTRAINT ledger_cosigned_pkey PRIMARY KEY (one);
ALTER TABLE ONLY public.ledger_entries
    ADD CONSTRAINT ledger_entries_id_key UNIQUE (id);
ALTER TABLE ONLY public.ledger_entries
    ADD CONSTRAINT ledger_entries_pkey PRIMARY KEY (idx);
ALTER TABLE ONLY public.ledger_head
    ADD CONSTRAINT ledger_head_pkey PRIMARY KEY (one);
ALTER TABLE ONLY public.ledger_leaves
    ADD CONSTRAINT ledger_leaves_pkey PRIMARY KEY (idx);
ALTER TABLE ONLY public.ledger_pending
    ADD CONSTRAINT ledger_pending_pkey PRIMARY KEY (seq);
ALTER TABLE ONLY public.ledger_stop
    ADD CONSTRAINT ledger_stop_pkey PRIMARY KEY (one);
ALTER TABLE ONLY public.ledger_tiles
    ADD CONSTRAINT ledger_tiles_pkey PRIMARY KEY (level, n);
ALTER TABLE ONLY public.ledger_writers
    ADD CONSTRAINT ledger_writers_pkey PRIMARY KEY (writer);
ALTER TABLE ONLY public.originals
    ADD CONSTRAINT originals_pkey PRIMARY KEY (attestation);
ALTER TABLE ONLY public.pins
    ADD CONSTRAINT pins_pkey PRIMARY KEY (server);
ALTER TABLE ONLY public.postings
    ADD CONSTRAINT postings_pkey PRIMARY KEY (token, block);
ALTER TABLE ONLY public.retractions
    ADD CONSTRAINT retractions_pkey PRIMARY KEY (target);
ALTER TABLE ONLY public.schema_steps
    ADD CONSTRAINT schema_steps_pkey PRIMARY KEY (version);
ALTER TABLE ONLY public.sessions
    ADD CONSTRAINT sessions_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.signin_links
    ADD CONSTRAINT signin_links_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.signins
    ADD CONSTRAINT signins_name_key UNIQUE (name);
ALTER TABLE ONLY public.signins
    ADD CONSTRAINT signins_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.tasks
    ADD CONSTRAINT tasks_pkey PRIMARY KEY (task, tool);
ALTER TABLE ONLY public.tokens
    ADD CONSTRAINT tokens_pkey PRIMARY KEY (token);
ALTER TABLE ONLY public.trust_scores
    ADD CONSTRAINT trust_scores_pkey PRIMARY KEY (options);
ALTER TABLE ONLY public.verdicts
    ADD CONSTRAINT verdicts_pkey PRIMARY KEY (digest);
ALTER TABLE ONLY public.webhooks
    ADD CONSTRAINT webhooks_pkey PRIMARY KEY (id);
CREATE INDEX approvals_call ON public.approvals USING btree (call) WHERE (revoked = ''::text);
CREATE INDEX attestations_claim ON public.attestations USING btree (claim, superseded_by, status, issued DESC, hash);
CREATE UNIQUE INDEX attestations_dedup ON public.attestations USING btree (dedup) WHERE (superseded_by IS NULL);
CREATE INDEX attestations_iri ON public.attestations USING btree (iri_key);
CREATE INDEX attestations_skeleton ON public.attestations USING btree (skeleton, id);
CREATE INDEX blocks_until ON public.blocks USING btree (until) WHERE (lifted = ''::text);
CREATE INDEX captures_at ON public.captures USING btree (at, id, size);
CREATE INDEX captures_principal ON public.captures USING btree (principal);
CREATE INDEX captures_until ON public.captures USING btree (until);
CREATE INDEX decisions_at ON public.decisions USING btree (at, idx, grp);
CREATE INDEX decisions_group ON public.decisions USING btree (grp, at, idx);
CREATE INDEX dependencies_target ON public.dependencies USING btree (target);
CREATE INDEX events_target ON public.events USING btree (target, at, hash);
CREATE INDEX held_at ON public.held USING btree (at);
CREATE INDEX held_call ON public.held USING btree (call, at) WHERE (state = 'released'::text);
CREATE INDEX held_facts ON public.held USING btree (state, at, id, until, server, tool, code, rule, principal, digest);
CREATE INDEX held_page ON public.held USING btree (at, id);
CREATE INDEX held_page_server ON public.held USING btree (server, at, id);
CREATE INDEX held_page_state ON public.held USING btree (state, at, id);
CREATE INDEX held_page_state_code ON public.held USING btree (state, code, at, id);
CREATE INDEX held_page_state_digest ON public.held USING btree (state, digest, at, id);
CREATE INDEX held_page_state_principal ON public.held USING btree (state, principal, at, id);
CREATE INDEX held_page_state_rule ON public.held USING btree (state, rule, at, id);
CREATE INDEX held_page_state_server ON public.held USING btree (state, server, at, id);
CREATE INDEX held_page_state_server_code ON public.held USING btree (state, server, code, at, id);
CREATE INDEX held_page_state_tool ON public.held USING btree (state, tool, at, id);
CREATE INDEX held_page_tool ON public.held USING btree (tool, at, id);
CREATE INDEX held_state ON public.held USING btree (state, server);
CREATE INDEX held_taken_principal ON public.held USING btree (principal, until, octets) WHERE (state = ANY (ARRAY['held'::text, 'released'::text]));
CREATE INDEX held_taken_server ON public.held USING btree (server, until, octets) WHERE (state = ANY (ARRAY['held'::text, 'released'::text]));
CREATE INDEX held_until ON public.held USING btree (until) WHERE (state = ANY (ARRAY['held'::text, 'released'::text]));
CREATE INDEX ledger_entries_at ON public.ledger_entries USING btree (at);
CREATE INDEX ledger_entries_keys ON public.ledger_entries USING btree (idx) WHERE (kind = 'key-installed'::text);
CREATE INDEX sessions_principal ON public.sessions USING btree (principal);
CREATE INDEX sessions_until ON public.sessions USING btree (until);
CREATE INDEX signins_person ON public.signins USING btree (person);
CREATE INDEX signins_seen ON public.signins USING btree (seen, id);
CREATE INDEX tasks_until ON public.tasks USING btree (until);
CREATE INDEX webhooks_due ON public.webhooks USING btree (receiver, due) WHERE (given_up = ''::text);
CREATE INDEX webhooks_given_up ON public.webhooks USING btree (given_up) WHERE (given_up <> ''::text);
ALTER TABLE ONLY public.attestations
    ADD CONSTRAINT attestations_claim_fkey FOREIGN KEY (claim) REFERENCES public.claims(id);
ALTER TABLE ONLY public.claim_domains
    ADD CONSTRAINT claim_domains_claim_fkey FOREIGN KEY (claim) REFERENCES public.claims(id);
ALTER TABLE ONLY public.dependencies
    ADD CONSTRAINT dependencies_attestation_fkey FOREIGN KEY (attestation) REFERENCES public.attestations(id);
ALTER TABLE ONLY public.originals
    ADD CONSTRAINT originals_attestation_fkey FOREIGN KEY (attestation) REFERENCES public.attestations(id);
