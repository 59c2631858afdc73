-- The tables of the store, as sqlite/00001_start.sql has them and describes them.
--
-- Integers are BIGINT. What is compared byte by byte has the collation "C". Bodies are packed already, so PostgreSQL
-- does not compress them. No sequence numbers rows: its numbers are not in the order of the commits.
-- +goose Up

-- The number that was given last in a table. A transaction that is rolled back gives its numbers back.
CREATE TABLE last_number (
  name   TEXT COLLATE "C" PRIMARY KEY,
  number BIGINT NOT NULL
) WITH (fillfactor = 50);

-- next_number takes the next number of a table.
CREATE FUNCTION next_number(counted TEXT) RETURNS BIGINT LANGUAGE SQL VOLATILE BEGIN ATOMIC
  INSERT INTO last_number (name, number) VALUES (counted, 1)
    ON CONFLICT (name) DO UPDATE SET number = last_number.number + 1 RETURNING number;
END;

CREATE TABLE source (
  number BIGINT PRIMARY KEY DEFAULT next_number('source'),
  name   TEXT COLLATE "C" NOT NULL UNIQUE,
  world  TEXT COLLATE "C" NOT NULL DEFAULT '',
  change BIGINT NOT NULL DEFAULT 0,
  page   BIGINT NOT NULL DEFAULT 0
);

CREATE TABLE kind (
  number     BIGINT PRIMARY KEY DEFAULT next_number('kind'),
  source     BIGINT NOT NULL REFERENCES source (number) DEFERRABLE INITIALLY IMMEDIATE,
  name       TEXT COLLATE "C" NOT NULL,
  prefix     TEXT COLLATE "C" NOT NULL DEFAULT '',
  records    BIGINT NOT NULL DEFAULT 0,
  changes    BIGINT NOT NULL DEFAULT 0,
  generation BIGINT NOT NULL DEFAULT 0,
  parent     TEXT COLLATE "C",
  terms      TEXT COLLATE "C",
  words      TEXT COLLATE "C",
  UNIQUE (source, name)
);

CREATE TABLE shape (
  number BIGINT PRIMARY KEY DEFAULT next_number('shape'),
  kind   BIGINT NOT NULL REFERENCES kind (number) DEFERRABLE INITIALLY IMMEDIATE,
  slot   BIGINT NOT NULL CHECK (slot BETWEEN 0 AND 63),
  name   TEXT COLLATE "C" NOT NULL,
  UNIQUE (kind, name)
);

CREATE TABLE counter (
  record           BIGINT NOT NULL,
  block            BIGINT NOT NULL,
  evicted_pages    BIGINT NOT NULL DEFAULT 0,
  evicted_versions BIGINT NOT NULL DEFAULT 0,
  evicted_at       BIGINT NOT NULL DEFAULT 0,
  erased           BIGINT NOT NULL DEFAULT 0,
  seal             BYTEA NOT NULL DEFAULT ''
);
INSERT INTO counter (record, block) VALUES (0, 2);

CREATE TABLE name_recent (
  kind   BIGINT NOT NULL,
  id     BYTEA NOT NULL,
  record BIGINT NOT NULL,
  erased BIGINT NOT NULL DEFAULT 0,
  PRIMARY KEY (kind, id)
);
CREATE TABLE name_middle (
  kind   BIGINT NOT NULL,
  id     BYTEA NOT NULL,
  record BIGINT NOT NULL,
  erased BIGINT NOT NULL DEFAULT 0,
  PRIMARY KEY (kind, id)
);
CREATE TABLE name (
  kind   BIGINT NOT NULL,
  id     BYTEA NOT NULL,
  record BIGINT NOT NULL,
  erased BIGINT NOT NULL DEFAULT 0,
  PRIMARY KEY (kind, id)
);
CREATE VIEW names AS
  SELECT kind, id, record, erased FROM name_recent UNION ALL
  SELECT kind, id, record, erased FROM name_middle UNION ALL
  SELECT kind, id, record, erased FROM name;

CREATE TABLE held (
  number  BIGINT PRIMARY KEY,
  version BIGINT NOT NULL,
  hash    BIGINT NOT NULL,
  seen    BIGINT NOT NULL,
  state   BIGINT NOT NULL,
  stretch BIGINT,
  since   BIGINT,
  place   BIGINT
);

CREATE TABLE past (
  held    BIGINT NOT NULL,
  number  BIGINT NOT NULL,
  version BIGINT,
  since   BIGINT,
  tag     BIGINT,
  PRIMARY KEY (held, number)
);

CREATE TABLE block (
  number BIGINT PRIMARY KEY,
  shape  BIGINT NOT NULL,
  count  BIGINT NOT NULL,
  size   BIGINT NOT NULL,
  body   BYTEA NOT NULL
);

CREATE TABLE made (
  block BIGINT PRIMARY KEY,
  at    BIGINT NOT NULL
);
INSERT INTO made VALUES (0, 0);

CREATE TABLE page (
  number     BIGINT PRIMARY KEY DEFAULT next_number('page'),
  key        BIGINT NOT NULL,
  source     BIGINT NOT NULL,
  kind       BIGINT NOT NULL,
  shape      BIGINT NOT NULL,
  list       BIGINT NOT NULL,
  status     BIGINT NOT NULL,
  generation BIGINT NOT NULL,
  at         BIGINT NOT NULL,
  version    BIGINT NOT NULL,
  sum        BYTEA NOT NULL,
  size       BIGINT NOT NULL,
  body       BYTEA NOT NULL,
  read       BIGINT NOT NULL DEFAULT 0
);
CREATE INDEX page_key ON page (key);

CREATE TABLE change (
  source  BIGINT NOT NULL,
  n       BIGINT NOT NULL,
  count   BIGINT NOT NULL,
  kind    BIGINT NOT NULL,
  what    BIGINT NOT NULL,
  record  BIGINT NOT NULL,
  version BIGINT NOT NULL,
  at      BIGINT NOT NULL,
  fields  BIGINT NOT NULL DEFAULT 0,
  PRIMARY KEY (source, n)
);

CREATE TABLE fields (
  number BIGINT PRIMARY KEY DEFAULT next_number('fields'),
  names  TEXT COLLATE "C" NOT NULL UNIQUE
);

CREATE TABLE parent (
  number BIGINT PRIMARY KEY DEFAULT next_number('parent'),
  id     TEXT COLLATE "C" NOT NULL UNIQUE
);

CREATE TABLE clock (
  shape  BIGINT NOT NULL,
  parent BIGINT NOT NULL,
  old    BIGINT NOT NULL,
  clock  BIGINT NOT NULL,
  record BIGINT NOT NULL,
  PRIMARY KEY (shape, parent, old, clock, record)
);

CREATE TABLE place (
  kind   BIGINT NOT NULL,
  at     BIGINT NOT NULL,
  record BIGINT NOT NULL,
  PRIMARY KEY (kind, at)
);

CREATE TABLE span (
  shape BIGINT NOT NULL,
  field TEXT COLLATE "C" NOT NULL,
  least BIGINT NOT NULL,
  most  BIGINT NOT NULL,
  PRIMARY KEY (shape, field)
);

CREATE TABLE term_run (
  number BIGINT PRIMARY KEY DEFAULT next_number('term_run'),
  level  BIGINT NOT NULL,
  target BIGINT NOT NULL
);
CREATE TABLE term_chunk (
  run     BIGINT NOT NULL,
  token   BIGINT NOT NULL,
  posting BIGINT NOT NULL,
  body    BYTEA NOT NULL
);
CREATE UNIQUE INDEX term_chunk_first ON term_chunk (run, token, posting);

-- The words of a record in one shape: posting is as in package postings. line has the words of all columns, each
-- between two spaces, lexemes each word once (package tsvector).
CREATE TABLE words (
  posting BIGINT PRIMARY KEY,
  line    TEXT COLLATE "C" NOT NULL,
  lexemes TSVECTOR NOT NULL
);
-- New rows wait in a list that each search reads. So the list is short.
CREATE INDEX words_lexemes ON words USING gin (lexemes) WITH (gin_pending_list_limit = 64);

CREATE TABLE built (
  words BIGINT NOT NULL,
  terms BIGINT NOT NULL
);
INSERT INTO built VALUES (9223372036854775807, 9223372036854775807);

CREATE TABLE job (
  number     BIGINT PRIMARY KEY DEFAULT next_number('job'),
  kind       TEXT COLLATE "C" NOT NULL,
  key        TEXT COLLATE "C" NOT NULL,
  payload    BYTEA NOT NULL,
  lane       BIGINT NOT NULL,
  once       BIGINT NOT NULL,
  attempts   BIGINT NOT NULL,
  weight     BIGINT NOT NULL,
  run_after  BIGINT NOT NULL,
  expires_at BIGINT NOT NULL,
  state      BIGINT NOT NULL,
  created    BIGINT NOT NULL,
  attempt    BIGINT NOT NULL DEFAULT 0,
  again      BIGINT NOT NULL DEFAULT 0,
  fence      BIGINT NOT NULL DEFAULT 0,
  worker     TEXT COLLATE "C" NOT NULL DEFAULT '',
  error      TEXT COLLATE "C" NOT NULL DEFAULT '',
  started    BIGINT NOT NULL DEFAULT 0,
  ended      BIGINT NOT NULL DEFAULT 0,
  lease_end  BIGINT NOT NULL DEFAULT 0,
  stop       BIGINT NOT NULL DEFAULT 0,
  done       BIGINT NOT NULL DEFAULT 0,
  total      BIGINT NOT NULL DEFAULT 0,
  note       TEXT COLLATE "C" NOT NULL DEFAULT '',
  mark       BYTEA NOT NULL DEFAULT ''
);
CREATE UNIQUE INDEX job_live ON job (kind, key) WHERE state <= 2 AND key <> '';
CREATE INDEX job_waiting ON job (kind, lane, run_after, number) WHERE state = 1;
CREATE INDEX job_expires ON job (expires_at) WHERE state = 1 AND expires_at > 0;
CREATE INDEX job_running ON job (kind, lease_end) WHERE state = 2;
CREATE INDEX job_ended ON job (state, ended, number) WHERE state >= 3;

CREATE TABLE job_plan (
  kind TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  last BIGINT NOT NULL
);

CREATE TABLE note (
  name  TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  value BYTEA NOT NULL
);

CREATE TABLE series (
  number BIGINT PRIMARY KEY DEFAULT next_number('series'),
  source TEXT COLLATE "C" NOT NULL,
  kind   TEXT COLLATE "C" NOT NULL,
  field  TEXT COLLATE "C" NOT NULL,
  UNIQUE (source, kind, field)
);
CREATE TABLE sample (
  series BIGINT NOT NULL,
  at     BIGINT NOT NULL,
  value  TEXT COLLATE "C" NOT NULL,
  PRIMARY KEY (series, at)
);

CREATE TABLE erasure (
  number   BIGINT PRIMARY KEY DEFAULT next_number('erasure'),
  source   BIGINT NOT NULL,
  cause    BIGINT NOT NULL,
  hash     BYTEA NOT NULL,
  begun    BIGINT NOT NULL,
  done     BIGINT NOT NULL DEFAULT 0,
  records  BIGINT NOT NULL DEFAULT 0,
  versions BIGINT NOT NULL DEFAULT 0,
  pages    BIGINT NOT NULL DEFAULT 0,
  files    BIGINT NOT NULL DEFAULT 0
);

CREATE TABLE erasing (
  number  BIGINT PRIMARY KEY DEFAULT next_number('erasing'),
  erasure BIGINT NOT NULL DEFAULT 0,
  source  BIGINT NOT NULL,
  kind    BIGINT NOT NULL,
  record  BIGINT NOT NULL,
  cause   BIGINT NOT NULL,
  bound   BIGINT NOT NULL DEFAULT 0,
  fields  TEXT COLLATE "C" NOT NULL DEFAULT '',
  at      BIGINT NOT NULL,
  state   BIGINT NOT NULL DEFAULT 0
);
CREATE INDEX erasing_state ON erasing (state, erasure);

CREATE TABLE claim (
  name   BYTEA NOT NULL PRIMARY KEY,
  at     BIGINT NOT NULL,
  result BYTEA NOT NULL DEFAULT ''
);
CREATE INDEX claim_at ON claim (at);

-- Rows that are updated often need room in their page, so that the indexes need not be changed. Packed bodies and
-- skeletons are not compressed again.
ALTER TABLE counter SET (fillfactor = 20);
ALTER TABLE source SET (fillfactor = 50);
ALTER TABLE kind SET (fillfactor = 50);
ALTER TABLE held SET (fillfactor = 80);
ALTER TABLE page SET (fillfactor = 80);
ALTER TABLE job SET (fillfactor = 50);
ALTER TABLE page ALTER COLUMN body SET STORAGE EXTERNAL;
ALTER TABLE block ALTER COLUMN body SET STORAGE EXTERNAL;
ALTER TABLE term_chunk ALTER COLUMN body SET STORAGE EXTERNAL;
