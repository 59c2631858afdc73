-- Tables of ids with smaller rows: types and an order of the columns without space between them. Tables that have rows already
-- get them when they are written again (names/forms.go).
-- +goose Up

DO $$
DECLARE one TEXT;
BEGIN
  IF EXISTS (SELECT FROM names) THEN
    RETURN;
  END IF;
  DROP VIEW names;
  FOREACH one IN ARRAY ARRAY['name_recent', 'name_middle', 'name'] LOOP
    EXECUTE format('DROP TABLE %I', one);
    EXECUTE format('CREATE TABLE %I (
      record BIGINT NOT NULL,
      kind   INTEGER NOT NULL,
      erased SMALLINT NOT NULL DEFAULT 0,
      id     BYTEA NOT NULL,
      PRIMARY KEY (kind, id)
    )', one);
  END LOOP;
  CREATE VIEW names AS
    SELECT kind, id, record, erased FROM name_recent UNION ALL
    SELECT kind, id, record, erased FROM name_middle UNION ALL
    SELECT kind, id, record, erased FROM name;
END $$;
