-- Which steps of the schema programs know (migrations.go).
-- +goose Up

-- needs is the last step that a program must know to use the database, knows the last one that a process knows.
ALTER TABLE counter ADD COLUMN needs BIGINT NOT NULL DEFAULT 0;
ALTER TABLE node    ADD COLUMN knows BIGINT NOT NULL DEFAULT 8;

-- require_step lets only programs that know a step use the database. It fails while an older process lives. No lease is
-- renewed meanwhile, so a process that joins later reads needs.
CREATE FUNCTION require_step(step BIGINT) RETURNS VOID LANGUAGE plpgsql AS $$
DECLARE older node%ROWTYPE;
BEGIN
  LOCK TABLE node IN SHARE MODE;
  SELECT * INTO older FROM node WHERE knows < step AND alive > extract(epoch FROM clock_timestamp()) * 1000000000 ORDER BY id LIMIT 1;
  IF FOUND THEN
    RAISE EXCEPTION 'the process % (version %) is older and uses what step % of the schema removes; replace that process first',
      older.id, older.version, step USING ERRCODE = 'US001';
  END IF;
  UPDATE counter SET needs = greatest(needs, step);
END $$;
