-- The first tables. Numbers are integers, times are Unix nanoseconds, ids are
-- tagged bytes (id.go), bodies are packed blocks (block.go).
-- +goose Up

-- One configured upstream. change and page are its counters, taken last in a
-- transaction: the number of the last change and of the last page body.
CREATE TABLE source (
  number INTEGER PRIMARY KEY,
  name   TEXT    NOT NULL UNIQUE,
  world  TEXT    NOT NULL DEFAULT '',
  change INTEGER NOT NULL DEFAULT 0,
  page   INTEGER NOT NULL DEFAULT 0
) STRICT;

-- A sort of record. prefix is what its 16-byte ids begin with. records and
-- changes are kept by each transaction, so that nothing is counted on demand.
CREATE TABLE kind (
  number     INTEGER PRIMARY KEY,
  source     INTEGER NOT NULL REFERENCES source (number),
  name       TEXT    NOT NULL,
  prefix     TEXT    NOT NULL DEFAULT '',
  records    INTEGER NOT NULL DEFAULT 0,
  changes    INTEGER NOT NULL DEFAULT 0,
  generation INTEGER NOT NULL DEFAULT 0,
  UNIQUE (source, name)
) STRICT;

-- How a kind is rendered. slot is its place in a record's held rows;
-- dictionary packs new blocks, envelope packs new pages (0: none yet).
CREATE TABLE shape (
  number     INTEGER PRIMARY KEY,
  kind       INTEGER NOT NULL REFERENCES kind (number),
  slot       INTEGER NOT NULL CHECK (slot BETWEEN 0 AND 63),
  name       TEXT    NOT NULL,
  dictionary INTEGER NOT NULL DEFAULT 0,
  envelope   INTEGER NOT NULL DEFAULT 0,
  UNIQUE (kind, name)
) STRICT;

-- What numbers were given last: one row.
CREATE TABLE counter (
  record INTEGER NOT NULL,
  block  INTEGER NOT NULL
) STRICT;
INSERT INTO counter VALUES (0, 0);

CREATE TABLE dictionary (
  number INTEGER PRIMARY KEY,
  shape  INTEGER NOT NULL REFERENCES shape (number),
  body   BLOB    NOT NULL
) STRICT;

-- From a record's id to its number.
CREATE TABLE name (
  kind   INTEGER NOT NULL,
  id     BLOB    NOT NULL,
  record INTEGER NOT NULL,
  PRIMARY KEY (kind, id)
) STRICT, WITHOUT ROWID;

-- The current version of a record in one shape: number is the record's number
-- times 64 plus the shape's slot. state: 1 final, 2 invalid, 4 gone.
CREATE TABLE held (
  number  INTEGER PRIMARY KEY,
  version INTEGER NOT NULL,
  hash    INTEGER NOT NULL,
  seen    INTEGER NOT NULL,
  state   INTEGER NOT NULL
) STRICT;

-- All versions of those held rows that have had more than one, so that a body
-- that comes back is found again. The others need no row here.
CREATE TABLE version (
  held    INTEGER NOT NULL,
  hash    INTEGER NOT NULL,
  version INTEGER NOT NULL,
  PRIMARY KEY (held, hash, version)
) STRICT, WITHOUT ROWID;

-- Up to 64 bodies of one shape, packed together. A version's number is its
-- block's number times 64 plus its place. size is the unpacked length.
CREATE TABLE block (
  number     INTEGER PRIMARY KEY,
  shape      INTEGER NOT NULL,
  dictionary INTEGER NOT NULL,
  count      INTEGER NOT NULL,
  size       INTEGER NOT NULL,
  body       BLOB    NOT NULL
) STRICT;

-- One upstream answer: its URI, its bytes outside the records and the versions
-- of the records, packed in body (skeleton.go). key is a hash of source and
-- URI, to find it by; the URI is compared when the body is unpacked.
CREATE TABLE page (
  number     INTEGER PRIMARY KEY,
  key        INTEGER NOT NULL,
  source     INTEGER NOT NULL,
  kind       INTEGER NOT NULL,
  shape      INTEGER NOT NULL,
  list       INTEGER NOT NULL,
  status     INTEGER NOT NULL,
  generation INTEGER NOT NULL,
  at         INTEGER NOT NULL,
  version    INTEGER NOT NULL,
  sum        BLOB    NOT NULL,
  dictionary INTEGER NOT NULL,
  size       INTEGER NOT NULL,
  body       BLOB    NOT NULL
) STRICT;
CREATE INDEX page_key ON page (key);

-- A run of changes of one sort in one save: n, n+1 … of records record,
-- record+1 … that now have version, version+1 …
CREATE TABLE change (
  source  INTEGER NOT NULL,
  n       INTEGER NOT NULL,
  count   INTEGER NOT NULL,
  kind    INTEGER NOT NULL,
  what    INTEGER NOT NULL,
  record  INTEGER NOT NULL,
  version INTEGER NOT NULL,
  at      INTEGER NOT NULL,
  PRIMARY KEY (source, n)
) STRICT, WITHOUT ROWID;
