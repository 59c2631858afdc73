-- The tables. Numbers are integers, times are Unix nanoseconds, ids are tagged
-- bytes (sqlite/id.go), bodies are packed blocks (codec/block.go).
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
-- parent, terms and words say how the indexes were made: parent is the field
-- that parents were taken from, terms the fields that terms were made of, words
-- which fields are text and how they are cut (words.Rule). Where a spec says
-- otherwise, or a value is NULL, the index is filled anew.
CREATE TABLE kind (
  number     INTEGER PRIMARY KEY,
  source     INTEGER NOT NULL REFERENCES source (number),
  name       TEXT    NOT NULL,
  prefix     TEXT    NOT NULL DEFAULT '',
  records    INTEGER NOT NULL DEFAULT 0,
  changes    INTEGER NOT NULL DEFAULT 0,
  generation INTEGER NOT NULL DEFAULT 0,
  parent     TEXT,
  terms      TEXT,
  words      TEXT,
  UNIQUE (source, name)
) STRICT;

-- How a kind is rendered. slot is its place in a record's held rows.
CREATE TABLE shape (
  number INTEGER PRIMARY KEY,
  kind   INTEGER NOT NULL REFERENCES kind (number),
  slot   INTEGER NOT NULL CHECK (slot BETWEEN 0 AND 63),
  name   TEXT    NOT NULL,
  UNIQUE (kind, name)
) STRICT;

-- One row. record and block are the numbers that were given last. evicted_* is
-- what the limit has made go so far, and when last. erased is how many names
-- have erased = 1 or 2, seal the key of the hashes in erasure.
CREATE TABLE counter (
  record           INTEGER NOT NULL,
  block            INTEGER NOT NULL,
  evicted_pages    INTEGER NOT NULL DEFAULT 0,
  evicted_versions INTEGER NOT NULL DEFAULT 0,
  evicted_at       INTEGER NOT NULL DEFAULT 0,
  erased           INTEGER NOT NULL DEFAULT 0,
  seal             BLOB    NOT NULL DEFAULT x''
) STRICT;
INSERT INTO counter (record, block) VALUES (0, 2);

-- From a record's id to its number. erased: 1 when a person was erased and the
-- record is not stored again, 2 when it was older than its kind is kept.
--
-- An id is in one of the three tables and moves from the first to the last
-- (package names). The view names reads them all.
CREATE TABLE name_recent (
  kind   INTEGER NOT NULL,
  id     BLOB    NOT NULL,
  record INTEGER NOT NULL,
  erased INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (kind, id)
) STRICT, WITHOUT ROWID;
CREATE TABLE name_middle (
  kind   INTEGER NOT NULL,
  id     BLOB    NOT NULL,
  record INTEGER NOT NULL,
  erased INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (kind, id)
) STRICT, WITHOUT ROWID;
CREATE TABLE name (
  kind   INTEGER NOT NULL,
  id     BLOB    NOT NULL,
  record INTEGER NOT NULL,
  erased INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (kind, id)
) STRICT, WITHOUT ROWID;
CREATE VIEW names AS
  SELECT kind, id, record, erased FROM name_recent UNION ALL
  SELECT kind, id, record, erased FROM name_middle UNION ALL
  SELECT kind, id, record, erased FROM name;

-- The current version of a record in one shape: number is the record's number
-- times 64 plus the shape's slot. state: 1 final, 2 invalid, 4 gone, 8 forgotten.
--
-- A stretch is a time in which a record looked the same in one shape, or was
-- gone. The one that lasts is in held, those that ended are in past. A stretch
-- is numbered from the numbers of versions, so that later ones have higher
-- numbers: one that began with a new version has its number (stretch is NULL)
-- and began when the version's block was made (since is NULL).
--
-- place is the record's position (place.go) times 2, plus 1 when a page has
-- shown it there. It is the same in all of a record's rows.
CREATE TABLE held (
  number  INTEGER PRIMARY KEY,
  version INTEGER NOT NULL,
  hash    INTEGER NOT NULL,
  seen    INTEGER NOT NULL,
  state   INTEGER NOT NULL,
  stretch INTEGER,
  since   INTEGER,
  place   INTEGER
) STRICT;

-- The stretches that ended. version: NULL for the number's own, 0 for a going.
-- since: NULL for when the block was made, -1 for a version that was never the
-- newest (it stood in a page, and was late or stood there twice). tag: 15 bits
-- of the body's hash, to find a body that comes back; NULL when there is none.
CREATE TABLE past (
  held    INTEGER NOT NULL,
  number  INTEGER NOT NULL,
  version INTEGER,
  since   INTEGER,
  tag     INTEGER,
  PRIMARY KEY (held, number)
) STRICT, WITHOUT ROWID;

-- Up to 64 bodies of one shape, packed together. A version's number is its
-- block's number times 64 plus its place. size is the unpacked length.
CREATE TABLE block (
  number INTEGER PRIMARY KEY,
  shape  INTEGER NOT NULL,
  count  INTEGER NOT NULL,
  size   INTEGER NOT NULL,
  body   BLOB    NOT NULL
) STRICT;

-- When blocks were made: those from this one on.
CREATE TABLE made (
  block INTEGER PRIMARY KEY,
  at    INTEGER NOT NULL
) STRICT;
INSERT INTO made VALUES (0, 0);

-- One upstream answer: its URI, its bytes outside the records and the versions
-- of the records, packed in body (codec/skeleton.go). key is a hash of source and
-- URI, to find it by; the URI is compared when the body is unpacked. read is the
-- last noted read in Unix seconds, 0 when none was noted; a page is also taken
-- to be read when it is saved (at).
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
  size       INTEGER NOT NULL,
  body       BLOB    NOT NULL,
  read       INTEGER NOT NULL DEFAULT 0
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
  fields  INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (source, n)
) STRICT, WITHOUT ROWID;

-- Sets of field names (one per line), for changes; 0 in a change: not known.
CREATE TABLE fields (
  number INTEGER PRIMARY KEY,
  names  TEXT NOT NULL UNIQUE
) STRICT;

-- The ids that records lie under.
CREATE TABLE parent (
  number INTEGER PRIMARY KEY,
  id     TEXT NOT NULL UNIQUE
) STRICT;

-- Records in one shape by their clock (Unix seconds; 0: none), once under
-- parent 0 and once under their parent, if they have one. old: 0 for the clock
-- of the newest version of a record that is present, 1 for others it had. The
-- order falls, as lists are read and walks save: new rows come last, and pages
-- of the file get full.
CREATE TABLE clock (
  shape  INTEGER NOT NULL,
  parent INTEGER NOT NULL,
  old    INTEGER NOT NULL,
  clock  INTEGER NOT NULL,
  record INTEGER NOT NULL,
  PRIMARY KEY (shape, parent, old, clock DESC, record DESC)
) STRICT, WITHOUT ROWID;

-- Records by their position. kind is negative for those that are held in no
-- shape now: their positions stay theirs. The order falls, as walks save.
CREATE TABLE place (
  kind   INTEGER NOT NULL,
  at     INTEGER NOT NULL,
  record INTEGER NOT NULL,
  PRIMARY KEY (kind, at DESC)
) STRICT, WITHOUT ROWID;

-- The earliest and the latest time (Unix seconds) a field of a shape ever had
-- more than an hour from where the record stands; and, under "~" and the field's
-- name, the least and the largest difference in seconds of the other times.
CREATE TABLE span (
  shape INTEGER NOT NULL,
  field TEXT    NOT NULL,
  least INTEGER NOT NULL,
  most  INTEGER NOT NULL,
  PRIMARY KEY (shape, field)
) STRICT, WITHOUT ROWID;

-- Exact terms (package inverted): entries of a token, a hash of shape, field and
-- value, and of a posting. Sorted entries are packed in chunks, whose first entry
-- is in token and posting; chunks lie in runs. target: the run that this one is
-- being merged into, 0 for none.
CREATE TABLE term_run (
  number INTEGER PRIMARY KEY,
  level  INTEGER NOT NULL,
  target INTEGER NOT NULL
) STRICT;
CREATE TABLE term_chunk (
  run     INTEGER NOT NULL,
  token   INTEGER NOT NULL,
  posting INTEGER NOT NULL,
  body    BLOB    NOT NULL
) STRICT;
CREATE UNIQUE INDEX term_chunk_first ON term_chunk (run, token, posting);

-- The words of a record in one shape, by columns of classes of fields; rowid is
-- its posting (package postings). They come cut and folded (package words): the tokenizer only
-- parts them at spaces. What is taken out leaves nothing behind.
CREATE VIRTUAL TABLE words USING fts5(body, plain, plain2, plain3, phone, phone2, name, url, other,
  content = '', columnsize = 0, tokenize = 'ascii');
INSERT INTO words (words, rank) VALUES ('secure-delete', 1);

-- The words that are in it.
CREATE VIRTUAL TABLE word USING fts5vocab(words, instance);

-- Up to which record the indexes of words and terms are built: one row. Saves keep them right up to there, the others come later.
CREATE TABLE built (
  words INTEGER NOT NULL,
  terms INTEGER NOT NULL
) STRICT;
INSERT INTO built VALUES (9223372036854775807, 9223372036854775807);

-- A job (job.go at the root). 0 is no time. state: 1 waiting, 2 running, from 3
-- on archived. again counts runs that did not count as attempts. Numbers are
-- never used twice.
CREATE TABLE job (
  number     INTEGER PRIMARY KEY AUTOINCREMENT,
  kind       TEXT    NOT NULL,
  key        TEXT    NOT NULL,
  payload    BLOB    NOT NULL,
  lane       INTEGER NOT NULL,
  once       INTEGER NOT NULL,
  attempts   INTEGER NOT NULL,
  weight     INTEGER NOT NULL,
  run_after  INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  state      INTEGER NOT NULL,
  created    INTEGER NOT NULL,
  attempt    INTEGER NOT NULL DEFAULT 0,
  again      INTEGER NOT NULL DEFAULT 0,
  fence      INTEGER NOT NULL DEFAULT 0,
  worker     TEXT    NOT NULL DEFAULT '',
  error      TEXT    NOT NULL DEFAULT '',
  started    INTEGER NOT NULL DEFAULT 0,
  ended      INTEGER NOT NULL DEFAULT 0,
  lease_end  INTEGER NOT NULL DEFAULT 0,
  stop       INTEGER NOT NULL DEFAULT 0,
  done       INTEGER NOT NULL DEFAULT 0,
  total      INTEGER NOT NULL DEFAULT 0,
  note       TEXT    NOT NULL DEFAULT '',
  mark       BLOB    NOT NULL DEFAULT x''
) STRICT;
CREATE UNIQUE INDEX job_live ON job (kind, key) WHERE state <= 2 AND key <> '';
CREATE INDEX job_waiting ON job (kind, lane, run_after, number) WHERE state = 1;
CREATE INDEX job_expires ON job (expires_at) WHERE state = 1 AND expires_at > 0;
CREATE INDEX job_running ON job (kind, lease_end) WHERE state = 2;
CREATE INDEX job_ended ON job (state, ended, number) WHERE state >= 3;

-- When a periodic kind was last planned.
CREATE TABLE job_plan (
  kind TEXT    NOT NULL PRIMARY KEY,
  last INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- A small value under a name: where a walk stands, what a receiver has.
CREATE TABLE note (
  name  TEXT NOT NULL PRIMARY KEY,
  value BLOB NOT NULL
) STRICT, WITHOUT ROWID;

-- A number that is kept as it was at times, as upstream wrote it.
CREATE TABLE series (
  number INTEGER PRIMARY KEY,
  source TEXT NOT NULL,
  kind   TEXT NOT NULL,
  field  TEXT NOT NULL,
  UNIQUE (source, kind, field)
) STRICT;
CREATE TABLE sample (
  series INTEGER NOT NULL,
  at     INTEGER NOT NULL,
  value  TEXT    NOT NULL,
  PRIMARY KEY (series, at)
) STRICT, WITHOUT ROWID;

-- One erasure and its receipt. It holds no text: hash is a keyed hash of the
-- number that was asked for. done is 0 until nothing of it is left in any file.
CREATE TABLE erasure (
  number   INTEGER PRIMARY KEY AUTOINCREMENT,
  source   INTEGER NOT NULL,
  cause    INTEGER NOT NULL,
  hash     BLOB    NOT NULL,
  begun    INTEGER NOT NULL,
  done     INTEGER NOT NULL DEFAULT 0,
  records  INTEGER NOT NULL DEFAULT 0,
  versions INTEGER NOT NULL DEFAULT 0,
  pages    INTEGER NOT NULL DEFAULT 0,
  files    INTEGER NOT NULL DEFAULT 0
) STRICT;

-- A record that waits to be erased, written with its cause. erasure is 0 until
-- a run takes it on. bound and fields are those of a redaction: versions before
-- bound in which one of the fields (a name a line) is not empty. state: 0 it is
-- not stored again, 1 its texts are out of every row, 2 nothing was done.
CREATE TABLE erasing (
  number  INTEGER PRIMARY KEY AUTOINCREMENT,
  erasure INTEGER NOT NULL DEFAULT 0,
  source  INTEGER NOT NULL,
  kind    INTEGER NOT NULL,
  record  INTEGER NOT NULL,
  cause   INTEGER NOT NULL,
  bound   INTEGER NOT NULL DEFAULT 0,
  fields  TEXT    NOT NULL DEFAULT '',
  at      INTEGER NOT NULL,
  state   INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX erasing_state ON erasing (state, erasure);

-- An action of a person that was begun: name is a hash of the person and of the key of the
-- form. Its uniqueness makes an action happen once. at is in Unix seconds. result: how it
-- ended, no text of a record; empty while that was not written.
CREATE TABLE claim (
  name   BLOB    NOT NULL PRIMARY KEY,
  at     INTEGER NOT NULL,
  result BLOB    NOT NULL DEFAULT x''
) STRICT, WITHOUT ROWID;
CREATE INDEX claim_at ON claim (at);
