-- What cloister 0.1 wrote: a ledger of version 1 with an open run and a finished one.
BEGIN TRANSACTION;
CREATE TABLE datasets (
    name text primary key, epsilon real not null, delta real not null,
    composition text not null check (composition in ('basic', 'zcdp')), declared text not null);
INSERT INTO "datasets" VALUES('people',1.0,1.0e-06,'basic','2026-11-22T03:49:06Z');
CREATE TABLE looks (
    run text not null references runs (id), number integer not null, round integer not null, question integer not null,
    level integer not null, error integer not null, ids blob not null, shape text not null, answers blob not null,
    primary key (run, number));
INSERT INTO "looks" VALUES('582c0c56cfc4',0,0,0,0,0,X'00000000000000000100000000000000','2',X'000000000000F83F00000000000000C0');
CREATE TABLE rounds (
    run text not null references runs (id), number integer not null, digest text not null,
    closed integer not null default 0, primary key (run, number));
INSERT INTO "rounds" VALUES('582c0c56cfc4',0,'first',1);
INSERT INTO "rounds" VALUES('bcb8e8f623eb',0,'first',0);
CREATE TABLE runs (
    id text primary key, dataset text not null references datasets (name), measure text not null,
    epsilon real not null check (epsilon >= 0), delta real not null check (delta >= 0),
    rho real not null check (rho >= 0), plan text not null, seed blob not null, owner text not null,
    state text not null check (state in ('open', 'done')), started text not null, finished text);
INSERT INTO "runs" VALUES('582c0c56cfc4','people','pure',0.25,0.0,0.03125,'plan',X'7075626C69632073656564','872f206dc012df3c283458a63247769b','open','2026-11-22T03:49:06Z',NULL);
INSERT INTO "runs" VALUES('bcb8e8f623eb','people','pure',0.125,0.0,0.0078125,'plan',X'7075626C69632073656564','2a233cdc9174bddaa0ceece3537e16fe','done','2026-11-22T03:49:06Z','2026-11-22T03:49:06Z');
CREATE INDEX runs_of_dataset on runs (dataset);
COMMIT;
pragma application_id = 1668051828;
pragma user_version = 1;
