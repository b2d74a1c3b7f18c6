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
CREATE TABLE public.conversations (
    id bytea NOT NULL,
    principal bytea NOT NULL,
    at text NOT NULL COLLATE pg_catalog."C",
    until text NOT NULL COLLATE pg_catalog."C",
    size bigint NOT NULL,
    sealed bytea NOT NULL
);
CREATE TABLE public.decision_groups (
    id bigint NOT NULL,
    wide integer NOT NULL,
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
CREATE TABLE public.decision_sums (
    level integer NOT NULL,
    slot bigint NOT NULL,
    code text NOT NULL COLLATE pg_catalog."C",
    grp bigint NOT NULL,
    n bigint NOT NULL
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
CREATE TABLE public.peers (
    peer text NOT NULL COLLATE pg_catalog."C",
    "position" text NOT NULL COLLATE pg_catalog."C"
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
INSERT INTO public.decision_groups VALUES (1, 0, 'key-installed', '', '', '');
INSERT INTO public.decision_groups VALUES (2, 0, 'message', 'demo', 'whisper', 'withheld');
INSERT INTO public.decision_groups VALUES (3, 0, 'result-held', 'demo', 'whisper', '');
INSERT INTO public.decision_groups VALUES (4, 1, 'key-installed', '', '', '');
INSERT INTO public.decision_groups VALUES (5, 1, 'message', 'demo', '', 'withheld');
INSERT INTO public.decision_groups VALUES (6, 1, 'result-held', 'demo', '', '');
INSERT INTO public.decision_index VALUES (1, 3, 'eb9a8845');
INSERT INTO public.decision_keys VALUES (-8688280404869463796, 1795861440415715, 1, 3);
INSERT INTO public.decision_keys VALUES (-8563858561867801454, 1795861440415388, 2, 2);
INSERT INTO public.decision_keys VALUES (-6578549624330233980, 1795861440415715, 1, 3);
INSERT INTO public.decision_keys VALUES (-3537940276957575763, 1795861440415388, 2, 2);
INSERT INTO public.decision_keys VALUES (-3537940276957575763, 1795861440415715, 1, 3);
INSERT INTO public.decision_keys VALUES (4877385435223452857, 1795861440415388, 2, 2);
INSERT INTO public.decision_keys VALUES (4877385435223452857, 1795861440415715, 1, 3);
INSERT INTO public.decision_sums VALUES (0, 997700, '', 1, 1);
INSERT INTO public.decision_sums VALUES (0, 997700, '', 2, 1);
INSERT INTO public.decision_sums VALUES (0, 997700, '', 3, 1);
INSERT INTO public.decision_sums VALUES (0, 997700, 'hidden-bidi', 2, 1);
INSERT INTO public.decision_sums VALUES (0, 997700, 'hidden-tag', 2, 1);
INSERT INTO public.decision_sums VALUES (0, 997700, 'hidden-tag', 3, 1);
INSERT INTO public.decision_sums VALUES (1, 997700, '', 4, 1);
INSERT INTO public.decision_sums VALUES (1, 997700, '', 5, 1);
INSERT INTO public.decision_sums VALUES (1, 997700, '', 6, 1);
INSERT INTO public.decision_sums VALUES (1, 997700, 'hidden-bidi', 5, 1);
INSERT INTO public.decision_sums VALUES (1, 997700, 'hidden-tag', 5, 1);
INSERT INTO public.decision_sums VALUES (1, 997700, 'hidden-tag', 6, 1);
INSERT INTO public.decision_sums VALUES (2, 166283, '', 1, 1);
INSERT INTO public.decision_sums VALUES (2, 166283, '', 2, 1);
INSERT INTO public.decision_sums VALUES (2, 166283, '', 3, 1);
INSERT INTO public.decision_sums VALUES (2, 166283, 'hidden-bidi', 2, 1);
INSERT INTO public.decision_sums VALUES (2, 166283, 'hidden-tag', 2, 1);
INSERT INTO public.decision_sums VALUES (2, 166283, 'hidden-tag', 3, 1);
INSERT INTO public.decision_sums VALUES (3, 166283, '', 4, 1);
INSERT INTO public.decision_sums VALUES (3, 166283, '', 5, 1);
INSERT INTO public.decision_sums VALUES (3, 166283, '', 6, 1);
INSERT INTO public.decision_sums VALUES (3, 166283, 'hidden-bidi', 5, 1);
INSERT INTO public.decision_sums VALUES (3, 166283, 'hidden-tag', 5, 1);
INSERT INTO public.decision_sums VALUES (3, 166283, 'hidden-tag', 6, 1);
INSERT INTO public.decision_sums VALUES (4, 20785, '', 1, 1);
INSERT INTO public.decision_sums VALUES (4, 20785, '', 2, 1);
INSERT INTO public.decision_sums VALUES (4, 20785, '', 3, 1);
INSERT INTO public.decision_sums VALUES (4, 20785, 'hidden-bidi', 2, 1);
INSERT INTO public.decision_sums VALUES (4, 20785, 'hidden-tag', 2, 1);
INSERT INTO public.decision_sums VALUES (4, 20785, 'hidden-tag', 3, 1);
INSERT INTO public.decision_sums VALUES (5, 20785, '', 4, 1);
INSERT INTO public.decision_sums VALUES (5, 20785, '', 5, 1);
INSERT INTO public.decision_sums VALUES (5, 20785, '', 6, 1);
INSERT INTO public.decision_sums VALUES (5, 20785, 'hidden-bidi', 5, 1);
INSERT INTO public.decision_sums VALUES (5, 20785, 'hidden-tag', 5, 1);
INSERT INTO public.decision_sums VALUES (5, 20785, 'hidden-tag', 6, 1);
INSERT INTO public.decisions VALUES (0, 1795861440485017, 1, '\xe81fbebeaf56dbe2ffd479e2dd0a5b6c', '\x', '', '');
INSERT INTO public.decisions VALUES (1, 1795861440415715, 3, '\x06b477ed5956abfaf148c588918d988f', '\x32829d566c331d94d9b9159a2881a2fa', 'hidden-tag', 'hidden-tag 1');
INSERT INTO public.decisions VALUES (2, 1795861440415388, 2, '\x32829d566c331d94d9b9159a2881a2fa', '\x', 'hidden-tag', 'hidden-bidi 1 hidden-tag 1');
INSERT INTO public.goose_db_version VALUES (1, 0, true, '2026-11-28 10:24:03.109555');
INSERT INTO public.goose_db_version VALUES (2, 100, true, '2026-11-28 10:24:03.118501');
INSERT INTO public.held VALUES ('32829d566c331d94d9b9159a2881a2fa', 'demo', 'whisper', '', 'finding', 'hidden-tag', '\x59c0cfd72aba50edde96386a7c4abbe1acfe45fb40368324c0539722dbb72ca6', '\x22baa5c0325e170bdf6c14e2234cba3592de6ee789859f1613aa04365be06089', 81, '\x7b22636f6e74656e74223a5b7b2274797065223a2274657874222c2274657874223a226265666f7265f3a081b3f3a081a1f3a081b9f3a080a0f3a081b9f3a081a5f3a081b3e280ae6166746572227d5d7d', '2026-11-28T10:24:00.41571597', '2026-11-29T10:24:00.41571597', 'held', '', '', '{"findings":[{"place":"content/0/text","code":"hidden-tag","count":1,"spans":[{"start":6,"end":34}]},{"place":"content/0/text","code":"hidden-bidi","count":1,"spans":[{"start":34,"end":37}]}]}', 'say yes', NULL, 1, '', '');
INSERT INTO public.leases VALUES ('log', '', 1, 3, '');
INSERT INTO public.ledger_chain VALUES ('10231ee7-bccefd253d57cb75', 1, 2, '\xabcba79eab9a29da00e480edc8e5d98b91e9ed0652fa604aafc37ac2816a99c1');
INSERT INTO public.ledger_chain VALUES ('10231ee7-bfb56b784565fafb', 1, 1, '\x3987413f0ec1298a9b6626be309f2a897907a55e1c4191fcd6754904899cc2e0');
INSERT INTO public.ledger_entries VALUES (0, '\xe81fbebeaf56dbe2ffd479e2dd0a5b6c', '2026-11-28T10:24:00.485017691', '', 'key-installed', '\x7b2264696765737473223a7b226b6579223a2233323939643131613839623762303563613631303338323837373662623763656663396265313365333931333235336265333334356334613466636536613333227d2c226964223a226538316662656265616635366462653266666434373965326464306135623663222c2273616c74223a2236323962623065316363613930316161636436393131316562623366366239346161353138616464313037643434653639643735373738316131356331306664227d');
INSERT INTO public.ledger_entries VALUES (1, '\x06b477ed5956abfaf148c588918d988f', '2026-11-28T10:24:00.41571597', 'demo', 'result-held', '\x7b2264696765737473223a7b2263616c6c223a2235396330636664373261626135306564646539363338366137633461626265316163666534356662343033363833323463303533393732326462623732636136222c2268656c64223a2232326261613563303332356531373062646636633134653232333463626133353932646536656537383938353966313631336161303433363562653036303839227d2c226964223a223036623437376564353935366162666166313438633538383931386439383866222c2273616c74223a2236333133323361396636356264623130396532336336663763386264393432653064376336363063633164336232333764353032306235336438356534656434227d');
INSERT INTO public.ledger_entries VALUES (2, '\x32829d566c331d94d9b9159a2881a2fa', '2026-11-28T10:24:00.415388651', 'demo', 'message', '\x7b2264696765737473223a7b227265636569766564223a2232326261613563303332356531373062646636633134653232333463626133353932646536656537383938353966313631336161303433363562653036303839227d2c226964223a223332383239643536366333333164393464396239313539613238383161326661222c2273616c74223a2263306635343732343630333232343337383865303764333833343361646332313464306464343338636330343962363535333831396238343532363436653962227d');
INSERT INTO public.ledger_head VALUES (1, 'pellucid/947e2e2a7016dddb', 'pellucid/947e2e2a7016dddb+f01fe55f', 3, '\x70656c6c756369642f393437653265326137303136646464620a330a6a34596932434f645139376c52386f76794855374c4a543750764d30757377767575477a4b59665a3931633d0a0ae280942070656c6c756369642f393437653265326137303136646464622038422f6c582b752f464d752f5a6c514b4f58466b397338564d7157695565314a4469536b427035656230436c454250674e76544146614b5557362b394a776870416c442b7a6c6377726964674a6767433234396b6954596c5251453d0a');
INSERT INTO public.ledger_leaves VALUES (0, '\x7b227061796c6f6164223a2265794a6664486c775a534936496d68306448427a4f69387661573474644739306279357062793954644746305a57316c626e5176646a45694c434a77636d566b61574e68644755694f6e7369615751694f694a6c4f44466d596d56695a57466d4e545a6b596d55795a6d5a6b4e4463355a544a6b5a4442684e57493259794973496d746c65534936496e426c6247783159326c6b4c7a6b304e3255795a544a684e7a41784e6d526b5a4749725a6a41785a6d55314e575972515756364d474a4752315a4d6369737254336879645870324e6e6432546b3477635778324d6b4e52635735435955785256314e5456444655645841694c434a726157356b496a6f69613256354c576c75633352686247786c5a434973496e5270625755694f6949794d4449324c5445784c544934564445774f6a49304f6a41774c6a51344e5441784e7a59354d566f696653776963484a6c5a476c6a5958526c56486c775a534936496d68306448427a4f6938765a326c30614856694c6d4e76625339775a57787364574e705a43317459334176634756736248566a615751765a585a705a47567559325576646a41754d534973496e4e31596d706c593351694f6c7437496d52705a32567a6443493665794a6f6257466a553268684d6a5532496a6f694f4468694e6a566a5a574e685a57466b5a6a517a4e4455784f5459324e4451334e4463304e4459314d324a6a5a6a55334d6d4e6b4f4759325a4756684e444a68596a6b324e4459354e7a686a597a67314e7a553159694a394c434a755957316c496a6f6961325635496e316466513d3d222c227061796c6f616454797065223a226170706c69636174696f6e2f766e642e696e2d746f746f2b6a736f6e222c227369676e617475726573223a5b7b226b65796964223a2270656c6c756369642f393437653265326137303136646464622b6630316665353566222c22736967223a224d51316f72437763582b4b665642522f2b356a2f48487732612f46705a4d6a474943737764574e4765627656584f716c3737475a4271447455526843663144376d2f6a54716436767032683547396b4b4c61586342413d3d227d5d7d');
INSERT INTO public.ledger_leaves VALUES (1, '\x7b227061796c6f6164223a2265794a6664486c775a534936496d68306448427a4f69387661573474644739306279357062793954644746305a57316c626e5176646a45694c434a77636d566b61574e68644755694f6e7369615751694f6949774e6d49304e7a646c5a4455354e545a68596d5a685a6a45304f474d314f4467354d54686b4f5467345a694973496d7470626d51694f694a795a584e3162485174614756735a434973496d353162574a6c636e4d694f6e7369596e6c305a584d694f6a67784c434a31626e5270624349364d5463354e546b304e7a67304d483073496d396d496a6f694d7a49344d6a6c6b4e545932597a4d7a4d5751354e475135596a6b784e546c684d6a67344d5745795a6d45694c434a795a57467a623234694f694a6f6157526b5a5734746447466e49697769636e56735a534936496d5a70626d5270626d63694c434a7a5a584a325a5849694f694a6b5a5731764969776964476c745a534936496a49774d6a59744d5445744d6a68554d5441364d6a51364d4441754e4445314e7a45314f54637757694973496e5276623277694f694a3361476c7a63475679496e3073496e42795a575270593246305a565235634755694f694a6f64485277637a6f764c326470644768315969356a62323076634756736248566a6157517462574e774c33426c6247783159326c6b4c3256326157526c626d4e6c4c3359774c6a45694c434a7a64574a715a574e30496a706265794a6b6157646c633351694f6e73696147316859314e6f595449314e694936496d55304d5449344e474577595459354d7a6b334d6a52684d5451344d47557a5a5459344d546c68596d45314f57457a4d47457a5a6d56684d5464685a574d7a4d5756685957466a59545a6c5a544e6b5957526c5a57496966537769626d46745a534936496d4e686247776966537837496d52705a32567a6443493665794a6f6257466a553268684d6a5532496a6f694d7a5269596a466d5a6d49784f546b324e6a6b344e6a49344e4745794d5751774d4751324e54566b4f4751314e6d557a4d5446694d6a5a685a6a6b355a4755774e7a673359324e684f474e6d4d6d59305a4749315a534a394c434a755957316c496a6f69614756735a434a395858303d222c227061796c6f616454797065223a226170706c69636174696f6e2f766e642e696e2d746f746f2b6a736f6e222c227369676e617475726573223a5b7b226b65796964223a2270656c6c756369642f393437653265326137303136646464622b6630316665353566222c22736967223a226178386e3935797452317a394a71567173397847534768344675335a32543036562b426e3657622f72684b36414e474775307a4e306b37617662336a33766d776961454f5a306d746e38575251655239334c7a4743673d3d227d5d7d');
INSERT INTO public.ledger_leaves VALUES (2, '\x7b227061796c6f6164223a2265794a6664486c775a534936496d68306448427a4f69387661573474644739306279357062793954644746305a57316c626e5176646a45694c434a77636d566b61574e68644755694f6e73695a6d6c755a476c755a334d694f6e736961476c6b5a4756754c574a705a476b694f6a4573496d68705a47526c62693130595763694f6a46394c434a705a434936496a4d794f4449355a4455324e6d4d7a4d7a466b4f54526b4f5749354d545535595449344f4446684d6d5a68496977696157357a6347566a6447566b496a6f794c434a726157356b496a6f696257567a6332466e5a534973496d316c644768765a434936496e52766232787a4c324e68624777694c434a77636d396d6157786c496a6f695a6d46706447686d645777694c434a795a57467a623234694f694a6f6157526b5a5734746447466e4969776963325679646d5679496a6f695a47567462794973496e4e6f5958426c496a6f69636d567a645778304969776964476c745a534936496a49774d6a59744d5445744d6a68554d5441364d6a51364d4441754e4445314d7a67344e6a557857694973496e5276623277694f694a3361476c7a6347567949697769646d56795a476c6a64434936496e64706447686f5a57786b49697769646d567963326c76626e4d694f6e7369633246756158526864476c7662694936496a41754e434973496e567561574e765a4755694f6949784e5334774c6a41696653776964326c306147686c624751694f6e736961476c6b5a4756754c5852685a7949364d5831394c434a77636d566b61574e68644756556558426c496a6f696148523063484d364c79396e6158526f64574975593239744c33426c6247783159326c6b4c57316a634339775a57787364574e705a43396c646d6c6b5a57356a5a5339324d4334784969776963335669616d566a64434936573373695a476c6e5a584e30496a7037496d687459574e54614745794e5459694f6949355a6a557a4d6a4d334f44466c5a5749354d6d526d59324e694d6a6b774e4467794d6a6b305a545a6c5a4449794e324e6c4d3259355a4746684d4467774f4455784d7a51334d7a5669595745795a5455794d574a69496e3073496d3568625755694f694a795a574e6c61585a6c5a434a395858303d222c227061796c6f616454797065223a226170706c69636174696f6e2f766e642e696e2d746f746f2b6a736f6e222c227369676e617475726573223a5b7b226b65796964223a2270656c6c756369642f393437653265326137303136646464622b6630316665353566222c22736967223a2258614a71656e42433741433542304a326c302b323871526942612f3047444a452b596a627643614a586f59576d686c6a6e417a702b73433147704955694842743435637a51382b64436b4b4a69433333426d695743673d3d227d5d7d');
INSERT INTO public.ledger_tiles VALUES (0, 0, '\x02bf9e9adbf70e7bcaaaed62f1f03679db5f261d9bfc61c9135b264f9bb624595fe1b73f1d94c0fc545c85829856044fa982844f5c5b9dbbf6ed93c3aba2e7b9d661cad859ddde8be5a8a736937b03665831903c3842c2e6bebce8a52561650f');
INSERT INTO public.ledger_writers VALUES ('10231ee7-bccefd253d57cb75', 1, '\x41ec631663d2f7255b39d2bd4ed856405a874d188e39b7a37f7f4bb88bb4ea6d');
INSERT INTO public.ledger_writers VALUES ('10231ee7-bfb56b784565fafb', 1, '\x0d3467afd9fd205e2b8cf85e9413083ebf3499d52abd9c988137f50f0140ce05');
INSERT INTO public.schema_steps VALUES (100, 100);
SELECT pg_catalog.setval('public.goose_db_version_id_seq', 2, true);
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
ALTER TABLE ONLY public.conversations
    ADD CONSTRAINT conversations_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.decision_groups
    ADD CONSTRAINT decision_groups_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.decision_groups
    ADD CONSTRAINT decision_groups_wide_kind_server_tool_verdict_key UNIQUE (wide, kind, server, tool, verdict);
ALTER TABLE ONLY public.decision_index
    ADD CONSTRAINT decision_index_pkey PRIMARY KEY (one);
ALTER TABLE ONLY public.decision_keys
    ADD CONSTRAINT decision_keys_pkey PRIMARY KEY (key, at, idx) INCLUDE (grp);
ALTER TABLE ONLY public.decision_sums
    ADD CONSTRAINT decision_sums_pkey PRIMARY KEY (level, slot, code, grp);
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
ALTER TABLE ONLY public.peers
    ADD CONSTRAINT peers_pkey PRIMARY KEY (peer);
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
CREATE INDEX conversations_size ON public.conversations USING btree (principal, at, size);
CREATE INDEX conversations_until ON public.conversations USING btree (until);
CREATE INDEX decision_sums_group ON public.decision_sums USING btree (grp, level, code, slot);
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
