-- Every version of a record is kept with the time it began, changes say which
-- fields they are about, and records are found by their clock.
-- +goose Up

-- A stretch is a time in which a record looked the same in one shape, or was
-- gone. The one that lasts is in held, those that ended are in past. A stretch
-- is numbered from the numbers of versions, so that later ones have higher
-- numbers: one that began with a new version has its number (NULL in held) and
-- began when the version's block was made (NULL).
ALTER TABLE held ADD COLUMN stretch INTEGER;
ALTER TABLE held ADD COLUMN since INTEGER;

-- version: NULL for the number's own, 0 for a going. since: Unix nanoseconds,
-- NULL for when the block was made, -1 for a version that was never the newest
-- (it stood in a page, and was late or stood there twice). tag: 15 bits of the
-- body's hash, to find a body that comes back; NULL when there is no body.
CREATE TABLE past (
  held    INTEGER NOT NULL,
  number  INTEGER NOT NULL,
  version INTEGER,
  since   INTEGER,
  tag     INTEGER,
  PRIMARY KEY (held, number)
) STRICT, WITHOUT ROWID;

-- When blocks were made: those from this one on, Unix nanoseconds.
CREATE TABLE made (
  block INTEGER PRIMARY KEY,
  at    INTEGER NOT NULL
) STRICT;

-- Sets of field names (one per line), for changes; 0 in a change: not known.
CREATE TABLE fields (
  number INTEGER PRIMARY KEY,
  names  TEXT NOT NULL UNIQUE
) STRICT;
ALTER TABLE change ADD COLUMN fields INTEGER NOT NULL DEFAULT 0;

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

-- The field that parents were taken from when clock was filled; NULL: it is to
-- be filled.
ALTER TABLE kind ADD COLUMN parent TEXT;

-- What is known of the past: changes say when versions were first seen. Those
-- that made no change (in a further shape) are known since they were seen last.
-- A run of changes may lie in many blocks.
WITH RECURSIVE run (block, last, at) AS (
  SELECT version / 64, (version + count - 1) / 64, at FROM change WHERE what <> 3
  UNION ALL SELECT block + 1, last, at FROM run WHERE block < last)
INSERT INTO made (block, at) SELECT block, min(at) FROM run GROUP BY block;
INSERT OR IGNORE INTO made (block, at) SELECT version / 64, min(seen) FROM held GROUP BY version / 64;
INSERT OR IGNORE INTO made (block, at) SELECT 0, coalesce(min(at), 0) FROM change;

INSERT INTO past (held, number, version, since, tag)
  SELECT v.held, v.version, NULL, CASE WHEN h.number IS NULL THEN -1 END, v.hash & 32767
  FROM version v LEFT JOIN held h ON h.number = v.held
  WHERE h.number IS NULL OR h.version <> v.version
    OR EXISTS (SELECT 1 FROM version later WHERE later.held = v.held AND later.version > v.version);

-- A newest version that is older than another one came back, when last seen.
UPDATE counter SET block = block + 2;
UPDATE held SET stretch = (SELECT (block - 1) * 64 FROM counter), since = seen
  WHERE EXISTS (SELECT 1 FROM version v WHERE v.held = held.number AND v.version > held.version);

-- What is gone went when it was last seen.
INSERT INTO past (held, number, version, since, tag)
  SELECT number, coalesce(stretch, version), CASE WHEN stretch IS NOT NULL THEN version END, since, hash & 32767
  FROM held WHERE state & 12 = 4;
UPDATE held SET stretch = (SELECT block * 64 FROM counter), since = seen WHERE state & 4 <> 0;

DROP TABLE version;
