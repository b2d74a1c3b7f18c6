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
    holder text NOT NULL COLLATE pg_catalog."C",
    fence bigint NOT NULL,
    beat bigint NOT NULL,
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
CREATE TABLE public.replicas (
    id text NOT NULL COLLATE pg_catalog."C",
    address text NOT NULL COLLATE pg_catalog."C",
    install_key text NOT NULL COLLATE pg_catalog."C",
    release text NOT NULL COLLATE pg_catalog."C",
    rules text NOT NULL COLLATE pg_catalog."C",
    started text NOT NULL COLLATE pg_catalog."C",
    spent bytea NOT NULL,
    beat bigint NOT NULL
);
CREATE TABLE public.retractions (
    target bytea NOT NULL
);
CREATE TABLE public.rules_versions (
    n bigint NOT NULL,
    version text NOT NULL COLLATE pg_catalog."C"
);
ALTER TABLE public.rules_versions ALTER COLUMN n ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.rules_versions_n_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
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
INSERT INTO public.decision_index VALUES (1, 3, '1b6a3ccf');
INSERT INTO public.decision_keys VALUES (-8563858561867801454, 1795860911823182, 2, 2);
INSERT INTO public.decision_keys VALUES (-3537940276957575763, 1795860911823182, 2, 2);
INSERT INTO public.decision_keys VALUES (-3537940276957575763, 1795860911825172, 1, 3);
INSERT INTO public.decision_keys VALUES (-59245233381126004, 1795860911825172, 1, 3);
INSERT INTO public.decision_keys VALUES (432723575664667177, 1795860911825172, 1, 3);
INSERT INTO public.decision_keys VALUES (453283388039904526, 1795860911823182, 2, 2);
INSERT INTO public.decision_keys VALUES (453283388039904526, 1795860911825172, 1, 3);
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
INSERT INTO public.decisions VALUES (0, 1795860911954176, 1, '\x0ece2568af84849276024b58eef41304', '\x', '', '');
INSERT INTO public.decisions VALUES (1, 1795860911825172, 3, '\x916b20be8c1d34cb1ee66392ade209c7', '\x6cfc47175635ecc1525cb91552958ad8', 'hidden-tag', 'hidden-tag 1');
INSERT INTO public.decisions VALUES (2, 1795860911823182, 2, '\x6cfc47175635ecc1525cb91552958ad8', '\x', 'hidden-tag', 'hidden-bidi 1 hidden-tag 1');
INSERT INTO public.goose_db_version VALUES (1, 0, true, '2026-11-28 10:15:16.081984');
INSERT INTO public.goose_db_version VALUES (2, 100, true, '2026-11-28 10:15:16.251986');
INSERT INTO public.held VALUES ('6cfc47175635ecc1525cb91552958ad8', 'demo', 'whisper', '', 'finding', 'hidden-tag', '\x59c0cfd72aba50edde96386a7c4abbe1acfe45fb40368324c0539722dbb72ca6', '\x22baa5c0325e170bdf6c14e2234cba3592de6ee789859f1613aa04365be06089', 81, '\x7b22636f6e74656e74223a5b7b2274797065223a2274657874222c2274657874223a226265666f7265f3a081b3f3a081a1f3a081b9f3a080a0f3a081b9f3a081a5f3a081b3e280ae6166746572227d5d7d', '2026-11-28T10:15:11.825172333', '2026-11-29T10:15:11.825172333', 'held', '', '', '{"findings":[{"place":"content/0/text","code":"hidden-tag","count":1,"spans":[{"start":6,"end":34}]},{"place":"content/0/text","code":"hidden-bidi","count":1,"spans":[{"start":34,"end":37}]}]}', 'say yes', NULL, 1, '', '');
INSERT INTO public.ledger_chain VALUES ('54a1e046-79daae4977b71fe1', 1, 1, '\x993801f4c20f1d77515eec053f61fabbc93e4a6993100536cff1550f5eedd08b');
INSERT INTO public.ledger_chain VALUES ('54a1e046-ba42943e23b06ce7', 1, 2, '\x345ae4f4d5a82a53116459ac0c9c3a758e98cec2ea15f2fb549daaed0ae6f1da');
INSERT INTO public.ledger_entries VALUES (0, '\x0ece2568af84849276024b58eef41304', '2026-11-28T10:15:11.954176271', '', 'key-installed', '\x7b2264696765737473223a7b226b6579223a2265363439343231393330333039313336316630656561363132353761313364396632386531353437356230313930373734333038393631373536323431666231227d2c226964223a223065636532353638616638343834393237363032346235386565663431333034222c2273616c74223a2236303430353530633066663834393035633631653436386435656233303265346365616635373561616364353036353030366538346662303839326637656661227d');
INSERT INTO public.ledger_entries VALUES (1, '\x916b20be8c1d34cb1ee66392ade209c7', '2026-11-28T10:15:11.825172333', 'demo', 'result-held', '\x7b2264696765737473223a7b2263616c6c223a2235396330636664373261626135306564646539363338366137633461626265316163666534356662343033363833323463303533393732326462623732636136222c2268656c64223a2232326261613563303332356531373062646636633134653232333463626133353932646536656537383938353966313631336161303433363562653036303839227d2c226964223a223931366232306265386331643334636231656536363339326164653230396337222c2273616c74223a2230313230323661303163363861333463303833376165326132343238636335366437646133303362626366316162663063343736333139383165316562653937227d');
INSERT INTO public.ledger_entries VALUES (2, '\x6cfc47175635ecc1525cb91552958ad8', '2026-11-28T10:15:11.823182353', 'demo', 'message', '\x7b2264696765737473223a7b227265636569766564223a2232326261613563303332356531373062646636633134653232333463626133353932646536656537383938353966313631336161303433363562653036303839227d2c226964223a223663666334373137353633356563633135323563623931353532393538616438222c2273616c74223a2231343139636164303037336337363131373936353534366666643433636164346564643333653834306666313430633832363837623964646137323463303732227d');
INSERT INTO public.ledger_head VALUES (1, 'pellucid/593d73068918c44f', 'pellucid/593d73068918c44f+a377e843', 3, '\x70656c6c756369642f353933643733303638393138633434660a330a395a4677736a5635514b4f4844595946627766557357716737554e7569424d4a30523572447330774778633d0a0ae280942070656c6c756369642f35393364373330363839313863343466206f33666f512f546b4e4d57667668624e474d75634d786c6d3363347977614c77644777587331427141536771376d68646134714268617569596545456e494e65596633772f70484769713244716f746472534a76357768637051303d0a', '', 1, 3);
INSERT INTO public.ledger_leaves VALUES (0, '\x7b227061796c6f6164223a2265794a6664486c775a534936496d68306448427a4f69387661573474644739306279357062793954644746305a57316c626e5176646a45694c434a77636d566b61574e68644755694f6e7369615751694f6949775a574e6c4d6a55324f47466d4f4451344e446b794e7a59774d6a52694e54686c5a5759304d544d774e434973496d746c65534936496e426c6247783159326c6b4c7a55354d3251334d7a41324f446b784f474d304e47597259544d334e3255344e444d7251566f32557a6c6a4e45396a4d5764614f4642565930394f5a6d356e574539484f553151536a4655546e643655477430647a6c4a4d3031785a554d694c434a726157356b496a6f69613256354c576c75633352686247786c5a434973496e5270625755694f6949794d4449324c5445784c544934564445774f6a45314f6a45784c6a6b314e4445334e6a49334d566f696653776963484a6c5a476c6a5958526c56486c775a534936496d68306448427a4f6938765a326c30614856694c6d4e76625339775a57787364574e705a43317459334176634756736248566a615751765a585a705a47567559325576646a41754d534973496e4e31596d706c593351694f6c7437496d52705a32567a6443493665794a6f6257466a553268684d6a5532496a6f69596a677a597a49344d5445774e574534596d457a4e446c6b596a4a684d5759794f5449794e5745304e4751324e7a45314d6a67784e6d4a684d54646b4d6d526c4d7a41795a574934596d59794f4467774e4749794f434a394c434a755957316c496a6f6961325635496e316466513d3d222c227061796c6f616454797065223a226170706c69636174696f6e2f766e642e696e2d746f746f2b6a736f6e222c227369676e617475726573223a5b7b226b65796964223a2270656c6c756369642f353933643733303638393138633434662b6133373765383433222c22736967223a2276324e4b346f6d3431305342794d42594338767476364c32736f666b337a2f7445386c344c494e4243574e333669562b52357155517367413654317379427477797776722b426537487a5531575142383647432b44413d3d227d5d7d');
INSERT INTO public.ledger_leaves VALUES (1, '\x7b227061796c6f6164223a2265794a6664486c775a534936496d68306448427a4f69387661573474644739306279357062793954644746305a57316c626e5176646a45694c434a77636d566b61574e68644755694f6e7369615751694f6949354d545a694d6a42695a54686a4d57517a4e474e694d57566c4e6a597a4f544a685a4755794d446c6a4e794973496d7470626d51694f694a795a584e3162485174614756735a434973496d353162574a6c636e4d694f6e7369596e6c305a584d694f6a67784c434a31626e5270624349364d5463354e546b304e7a4d784d583073496d396d496a6f694e6d4e6d597a51334d5463314e6a4d315a574e6a4d5455794e574e694f5445314e5449354e5468685a4467694c434a795a57467a623234694f694a6f6157526b5a5734746447466e49697769636e56735a534936496d5a70626d5270626d63694c434a7a5a584a325a5849694f694a6b5a5731764969776964476c745a534936496a49774d6a59744d5445744d6a68554d5441364d5455364d5445754f4449314d5463794d7a4d7a57694973496e5276623277694f694a3361476c7a63475679496e3073496e42795a575270593246305a565235634755694f694a6f64485277637a6f764c326470644768315969356a62323076634756736248566a6157517462574e774c33426c6247783159326c6b4c3256326157526c626d4e6c4c3359774c6a45694c434a7a64574a715a574e30496a706265794a6b6157646c633351694f6e73696147316859314e6f595449314e694936496a41335954426b4d54686859574d35596a4a6b5a4752694f574d7859546b314e6d49354e44686a4e32557a4e7a497759544a6b4d5745304d444e694e546c6a4d7a4e6a597a686c5a444d354d475a6b5a5752684d6d516966537769626d46745a534936496d4e686247776966537837496d52705a32567a6443493665794a6f6257466a553268684d6a5532496a6f694e444d314d7a426a4d6d466a4d7a4d335a6d49354f47553259544935595463774e7a51324e6d52694f544535595441345a6a63794d6d4a6b4f474e695a5459344d7a526a597a41354e6a4a694f5463314d6a67324d794a394c434a755957316c496a6f69614756735a434a395858303d222c227061796c6f616454797065223a226170706c69636174696f6e2f766e642e696e2d746f746f2b6a736f6e222c227369676e617475726573223a5b7b226b65796964223a2270656c6c756369642f353933643733303638393138633434662b6133373765383433222c22736967223a2267314e63786d4a48756d31746e6e547369737a4657616a316157756b577435764d566e72664851696c45636358655a386e6e746d3573336639396c68304a742b7a6c4e3636614e2b477653677062695154725a7a41513d3d227d5d7d');
INSERT INTO public.ledger_leaves VALUES (2, '\x7b227061796c6f6164223a2265794a6664486c775a534936496d68306448427a4f69387661573474644739306279357062793954644746305a57316c626e5176646a45694c434a77636d566b61574e68644755694f6e73695a6d6c755a476c755a334d694f6e736961476c6b5a4756754c574a705a476b694f6a4573496d68705a47526c62693130595763694f6a46394c434a705a434936496a5a6a5a6d4d304e7a45334e54597a4e57566a597a45314d6a566a596a6b784e5455794f54553459575134496977696157357a6347566a6447566b496a6f794c434a726157356b496a6f696257567a6332466e5a534973496d316c644768765a434936496e52766232787a4c324e68624777694c434a77636d396d6157786c496a6f695a6d46706447686d645777694c434a795a57467a623234694f694a6f6157526b5a5734746447466e4969776963325679646d5679496a6f695a47567462794973496e4e6f5958426c496a6f69636d567a645778304969776964476c745a534936496a49774d6a59744d5445744d6a68554d5441364d5455364d5445754f44497a4d5467794d7a557a57694973496e5276623277694f694a3361476c7a6347567949697769646d56795a476c6a64434936496e64706447686f5a57786b49697769646d567963326c76626e4d694f6e7369633246756158526864476c7662694936496a41754e434973496e567561574e765a4755694f6949784e5334774c6a41696653776964326c306147686c624751694f6e736961476c6b5a4756754c5852685a7949364d5831394c434a77636d566b61574e68644756556558426c496a6f696148523063484d364c79396e6158526f64574975593239744c33426c6247783159326c6b4c57316a634339775a57787364574e705a43396c646d6c6b5a57356a5a5339324d4334784969776963335669616d566a64434936573373695a476c6e5a584e30496a7037496d687459574e54614745794e5459694f69493059574d314d4445795a474a6d5a57566d5a5459334d32593359324e684e4455314e6d557a4f474d794e324a684e5459324d6a517a5a6d59794d6a41324e5451785a544d775932597a4d4459334d544d784e324535496e3073496d3568625755694f694a795a574e6c61585a6c5a434a395858303d222c227061796c6f616454797065223a226170706c69636174696f6e2f766e642e696e2d746f746f2b6a736f6e222c227369676e617475726573223a5b7b226b65796964223a2270656c6c756369642f353933643733303638393138633434662b6133373765383433222c22736967223a2257386b447173676d7162547534596478305a7531436c3947393137694d5079676e786265514375633638387a496f5833377570336959464c6c786e6e4a655946654d4371534357666d6a314a564269413436544641773d3d227d5d7d');
INSERT INTO public.ledger_tiles VALUES (0, 0, '\x7c538eb3a2416c3593e9383f19c6b18aec182709fdb25b76688f7196d7f8c24fa4635596628c673d7255c7b021dddb8507fb01f0b2615fe2ed7b00953f83a947d714025a5dc485a970bdb55b6ac74ac53ac88185c47e80a137b6fb26cc2cb939');
INSERT INTO public.ledger_writers VALUES ('54a1e046-79daae4977b71fe1', 1, '\xa93cc37ea01bfbe8b8578375fdb54a91b1ead2b3de03b165f0bfb40f17456407');
INSERT INTO public.ledger_writers VALUES ('54a1e046-ba42943e23b06ce7', 1, '\x85b3078d0ad705210e052ed7d80ea2507391969387c49589f2f9a11047cbf81e');
INSERT INTO public.schema_steps VALUES (100, 100);
SELECT pg_catalog.setval('public.goose_db_version_id_seq', 2, true);
SELECT pg_catalog.setval('public.ledger_pending_seq_seq', 1, false);
SELECT pg_catalog.setval('public.rules_versions_n_seq', 1, false);
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
ALTER TABLE ONLY public.replicas
    ADD CONSTRAINT replicas_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.retractions
    ADD CONSTRAINT retractions_pkey PRIMARY KEY (target);
ALTER TABLE ONLY public.rules_versions
    ADD CONSTRAINT rules_versions_pkey PRIMARY KEY (n);
ALTER TABLE ONLY public.rules_versions
    ADD CONSTRAINT rules_versions_version_key UNIQUE (version);
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
