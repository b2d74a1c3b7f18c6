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
INSERT INTO public.decision_index VALUES (1, 3, '59ff18c5');
INSERT INTO public.decision_keys VALUES (-8859274205742056817, 1795862032018148, 1, 3);
INSERT INTO public.decision_keys VALUES (-8563858561867801454, 1795862032017396, 2, 2);
INSERT INTO public.decision_keys VALUES (-5482319508711830689, 1795862032018148, 1, 3);
INSERT INTO public.decision_keys VALUES (-3537940276957575763, 1795862032017396, 2, 2);
INSERT INTO public.decision_keys VALUES (-3537940276957575763, 1795862032018148, 1, 3);
INSERT INTO public.decision_keys VALUES (4642553015850074722, 1795862032017396, 2, 2);
INSERT INTO public.decision_keys VALUES (4642553015850074722, 1795862032018148, 1, 3);
INSERT INTO public.decision_sums VALUES (0, 997701, '', 1, 1);
INSERT INTO public.decision_sums VALUES (0, 997701, '', 2, 1);
INSERT INTO public.decision_sums VALUES (0, 997701, '', 3, 1);
INSERT INTO public.decision_sums VALUES (0, 997701, 'hidden-bidi', 2, 1);
INSERT INTO public.decision_sums VALUES (0, 997701, 'hidden-tag', 2, 1);
INSERT INTO public.decision_sums VALUES (0, 997701, 'hidden-tag', 3, 1);
INSERT INTO public.decision_sums VALUES (1, 997701, '', 4, 1);
INSERT INTO public.decision_sums VALUES (1, 997701, '', 5, 1);
INSERT INTO public.decision_sums VALUES (1, 997701, '', 6, 1);
INSERT INTO public.decision_sums VALUES (1, 997701, 'hidden-bidi', 5, 1);
INSERT INTO public.decision_sums VALUES (1, 997701, 'hidden-tag', 5, 1);
INSERT INTO public.decision_sums VALUES (1, 997701, 'hidden-tag', 6, 1);
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
INSERT INTO public.decisions VALUES (0, 1795862032049063, 1, '\x41c7a63bda5066e022f5f5da30dac2da', '\x', '', '');
INSERT INTO public.decisions VALUES (1, 1795862032018148, 3, '\xc1cbbf901f225ad2bb01317e2f7e5360', '\x813f8d36f50e23524eb46ab58eeb2c25', 'hidden-tag', 'hidden-tag 1');
INSERT INTO public.decisions VALUES (2, 1795862032017396, 2, '\x813f8d36f50e23524eb46ab58eeb2c25', '\x', 'hidden-tag', 'hidden-bidi 1 hidden-tag 1');
INSERT INTO public.goose_db_version VALUES (1, 0, true, '2026-11-28 10:33:53.611848');
INSERT INTO public.goose_db_version VALUES (2, 100, true, '2026-11-28 10:33:53.622341');
INSERT INTO public.held VALUES ('813f8d36f50e23524eb46ab58eeb2c25', 'demo', 'whisper', '', 'finding', 'hidden-tag', '\x59c0cfd72aba50edde96386a7c4abbe1acfe45fb40368324c0539722dbb72ca6', '\x22baa5c0325e170bdf6c14e2234cba3592de6ee789859f1613aa04365be06089', 81, '\x7b22636f6e74656e74223a5b7b2274797065223a2274657874222c2274657874223a226265666f7265f3a081b3f3a081a1f3a081b9f3a080a0f3a081b9f3a081a5f3a081b3e280ae6166746572227d5d7d', '2026-11-28T10:33:52.018148601', '2026-11-29T10:33:52.018148601', 'held', '', '', '{"findings":[{"place":"content/0/text","code":"hidden-tag","count":1,"spans":[{"start":6,"end":34}]},{"place":"content/0/text","code":"hidden-bidi","count":1,"spans":[{"start":34,"end":37}]}]}', 'say yes', NULL, 1, '', '');
INSERT INTO public.leases VALUES ('log', '', 1, 3, '');
INSERT INTO public.ledger_chain VALUES ('d88eda7d-9ef4b155be007922', 1, 1, '\x9393bd866343d6c50322eb1c6b52d158dbd13d64f8e7dfdc3700eb44826eea2a');
INSERT INTO public.ledger_chain VALUES ('d88eda7d-e678a716d3ecf974', 1, 2, '\xaadc96e282fc9c450e3af7b5a1ffa866b3973b6fc9a8494dcfca491083e0f225');
INSERT INTO public.ledger_entries VALUES (0, '\x41c7a63bda5066e022f5f5da30dac2da', '2026-11-28T10:33:52.049063309', '', 'key-installed', '\x7b2264696765737473223a7b226b6579223a2261653362653337386266636532333138343261326462323664306630393661336465363263616431316261306632333532313131643533306234643731366437227d2c226964223a223431633761363362646135303636653032326635663564613330646163326461222c2273616c74223a2263653530633235663836306662326561306538306537336532353430353133353661626131313163316130643061303635646461396465393539363532613563227d');
INSERT INTO public.ledger_entries VALUES (1, '\xc1cbbf901f225ad2bb01317e2f7e5360', '2026-11-28T10:33:52.018148601', 'demo', 'result-held', '\x7b2264696765737473223a7b2263616c6c223a2235396330636664373261626135306564646539363338366137633461626265316163666534356662343033363833323463303533393732326462623732636136222c2268656c64223a2232326261613563303332356531373062646636633134653232333463626133353932646536656537383938353966313631336161303433363562653036303839227d2c226964223a226331636262663930316632323561643262623031333137653266376535333630222c2273616c74223a2235396639323431643038656465396362336262323461353535363863646230633662363234356237396336333138303766643764323766633731363266633135227d');
INSERT INTO public.ledger_entries VALUES (2, '\x813f8d36f50e23524eb46ab58eeb2c25', '2026-11-28T10:33:52.017396078', 'demo', 'message', '\x7b2264696765737473223a7b227265636569766564223a2232326261613563303332356531373062646636633134653232333463626133353932646536656537383938353966313631336161303433363562653036303839227d2c226964223a223831336638643336663530653233353234656234366162353865656232633235222c2273616c74223a2237353431316630643462616339613535343264376134396436663533313364343164656637386337346433393630356434363961353733626634613232356262227d');
INSERT INTO public.ledger_head VALUES (1, 'pellucid/012dd449775e1a0d', 'pellucid/012dd449775e1a0d+7754c257', 3, '\x70656c6c756369642f303132646434343937373565316130640a330a7935626a3052412b624a32324e4d6e39776a444f426b74796d7548524b7579713155644b4e33707a49486b3d0a0ae280942070656c6c756369642f303132646434343937373565316130642064315443567a475049537031745578375968664c563947476a3630446a4b4337596b396a63554b6845647271792b784769336d7438786457564176756254633973456c564857384577654b50532f3358734d5051574e71355567413d0a');
INSERT INTO public.ledger_leaves VALUES (0, '\x7b227061796c6f6164223a2265794a6664486c775a534936496d68306448427a4f69387661573474644739306279357062793954644746305a57316c626e5176646a45694c434a77636d566b61574e68644755694f6e7369615751694f6949304d574d335954597a596d52684e5441324e6d55774d6a4a6d4e5759315a47457a4d475268597a4a6b59534973496d746c65534936496e426c6247783159326c6b4c7a41784d6d526b4e4451354e7a63315a5446684d4751724e7a63314e474d794e54637251564636656d633155454673536e4a4b5653394662544932615339455a5845794d5651764e6c63344d3156785455357a536d6c4b646d5a50526e67694c434a726157356b496a6f69613256354c576c75633352686247786c5a434973496e5270625755694f6949794d4449324c5445784c544934564445774f6a4d7a4f6a55794c6a41304f5441324d7a4d774f566f696653776963484a6c5a476c6a5958526c56486c775a534936496d68306448427a4f6938765a326c30614856694c6d4e76625339775a57787364574e705a43317459334176634756736248566a615751765a585a705a47567559325576646a41754d534973496e4e31596d706c593351694f6c7437496d52705a32567a6443493665794a6f6257466a553268684d6a5532496a6f695a6a466b59545531596a64684e6a6868596a41795a6d4a6b597a45774d54566c4d3259334f4463344d5745784f546b324e6a6c6b4e5755784d7a4d3459544e6b4f54526d4e6a51334d47457a4e6d49344e6a497a5a434a394c434a755957316c496a6f6961325635496e316466513d3d222c227061796c6f616454797065223a226170706c69636174696f6e2f766e642e696e2d746f746f2b6a736f6e222c227369676e617475726573223a5b7b226b65796964223a2270656c6c756369642f303132646434343937373565316130642b3737353463323537222c22736967223a2277416c31586c69552b34346b4e547a4636645467554752415145766d575146595472466970625939534e4f4549666165445a2b363065494c4e76644f5949663177507032346157354d45684a63735355694e797942513d3d227d5d7d');
INSERT INTO public.ledger_leaves VALUES (1, '\x7b227061796c6f6164223a2265794a6664486c775a534936496d68306448427a4f69387661573474644739306279357062793954644746305a57316c626e5176646a45694c434a77636d566b61574e68644755694f6e7369615751694f694a6a4d574e69596d59354d44466d4d6a493159575179596d49774d544d784e3255795a6a646c4e544d324d434973496d7470626d51694f694a795a584e3162485174614756735a434973496d353162574a6c636e4d694f6e7369596e6c305a584d694f6a67784c434a31626e5270624349364d5463354e546b304f44517a4d6e3073496d396d496a6f694f44457a5a6a686b4d7a5a6d4e54426c4d6a4d314d6a526c596a5132595749314f47566c596a4a6a4d6a55694c434a795a57467a623234694f694a6f6157526b5a5734746447466e49697769636e56735a534936496d5a70626d5270626d63694c434a7a5a584a325a5849694f694a6b5a5731764969776964476c745a534936496a49774d6a59744d5445744d6a68554d5441364d7a4d364e5449754d4445344d5451344e6a417857694973496e5276623277694f694a3361476c7a63475679496e3073496e42795a575270593246305a565235634755694f694a6f64485277637a6f764c326470644768315969356a62323076634756736248566a6157517462574e774c33426c6247783159326c6b4c3256326157526c626d4e6c4c3359774c6a45694c434a7a64574a715a574e30496a706265794a6b6157646c633351694f6e73696147316859314e6f595449314e694936496a4a6d596a55354e6a426c5a44426d5a5449774d544d305a4464694f5759354e5445324d6a41324f47526a4d7a466b4d6d59774d544d304f4441354d7a49774f44646d4e6a4133596a51795a6a59335a6a4d325954496966537769626d46745a534936496d4e686247776966537837496d52705a32567a6443493665794a6f6257466a553268684d6a5532496a6f694d6a4d344e4745354f4751345a6a4e6a4f5759774d6d4e6a5954413159575979597a5a694d5455355a6d45334e7a51334e545a6b5a4449314e6a41785954566b4d4749795a6a49334d6a526d5a4445784d54497a4d434a394c434a755957316c496a6f69614756735a434a395858303d222c227061796c6f616454797065223a226170706c69636174696f6e2f766e642e696e2d746f746f2b6a736f6e222c227369676e617475726573223a5b7b226b65796964223a2270656c6c756369642f303132646434343937373565316130642b3737353463323537222c22736967223a22377a3368354b34797a376e65726131484d654c655332396b6e71496f584361306c632b354449717777726c464e695070346232696f57643741346135735567464366503868446f56764f7774317833453870423642413d3d227d5d7d');
INSERT INTO public.ledger_leaves VALUES (2, '\x7b227061796c6f6164223a2265794a6664486c775a534936496d68306448427a4f69387661573474644739306279357062793954644746305a57316c626e5176646a45694c434a77636d566b61574e68644755694f6e73695a6d6c755a476c755a334d694f6e736961476c6b5a4756754c574a705a476b694f6a4573496d68705a47526c62693130595763694f6a46394c434a705a434936496a67784d3259345a444d325a6a55775a54497a4e5449305a5749304e6d46694e54686c5a574979597a4931496977696157357a6347566a6447566b496a6f794c434a726157356b496a6f696257567a6332466e5a534973496d316c644768765a434936496e52766232787a4c324e68624777694c434a77636d396d6157786c496a6f695a6d46706447686d645777694c434a795a57467a623234694f694a6f6157526b5a5734746447466e4969776963325679646d5679496a6f695a47567462794973496e4e6f5958426c496a6f69636d567a645778304969776964476c745a534936496a49774d6a59744d5445744d6a68554d5441364d7a4d364e5449754d4445334d7a6b324d44633457694973496e5276623277694f694a3361476c7a6347567949697769646d56795a476c6a64434936496e64706447686f5a57786b49697769646d567963326c76626e4d694f6e7369633246756158526864476c7662694936496a41754e434973496e567561574e765a4755694f6949784e5334774c6a41696653776964326c306147686c624751694f6e736961476c6b5a4756754c5852685a7949364d5831394c434a77636d566b61574e68644756556558426c496a6f696148523063484d364c79396e6158526f64574975593239744c33426c6247783159326c6b4c57316a634339775a57787364574e705a43396c646d6c6b5a57356a5a5339324d4334784969776963335669616d566a64434936573373695a476c6e5a584e30496a7037496d687459574e54614745794e5459694f694a6b4e6a51794e6a67324f546b7a4d6a51794f574d305a4442684d6a466c5a446c6c4f44426d5a4459354e324e6b5a44557a596a526c4d4445795a6a64684d6d4a694d474d354e4459794d446b314f4749794f544530496e3073496d3568625755694f694a795a574e6c61585a6c5a434a395858303d222c227061796c6f616454797065223a226170706c69636174696f6e2f766e642e696e2d746f746f2b6a736f6e222c227369676e617475726573223a5b7b226b65796964223a2270656c6c756369642f303132646434343937373565316130642b3737353463323537222c22736967223a2271394e642f6b456869415059587539412f6f724e7a4772574e757177783636415243314372442f587370563879346b6455674e4b39567576564e716533346c6f44437565516a7a6d414f414a674562766958577844413d3d227d5d7d');
INSERT INTO public.ledger_tiles VALUES (0, 0, '\xfe21289a6e52cba1f9f2965498a5226bbb92aaac4f8c5f3669e2024653da6e028f537a8920b22d5e7ee72c763f07f31e51d85734033e85d456be9ad22e91622e84dca1fd4de6112a9afef80b5330ab202782285eb7fb963ee28837e2ad898283');
INSERT INTO public.ledger_writers VALUES ('d88eda7d-9ef4b155be007922', 1, '\xc5bae90c485acda5784586153dc8603b4d6fc9310f19f9f0847140d2276aa5e0');
INSERT INTO public.ledger_writers VALUES ('d88eda7d-e678a716d3ecf974', 1, '\xb86d6fd23690581da02be0cf2c4f88263d6199ecee3100a857cae103ebd8a849');
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
