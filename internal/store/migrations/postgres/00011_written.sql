-- The records of the last writes, for other processes (nodes/others.go).
-- +expand
-- +goose Up

CREATE TABLE written (
  kind       BIGINT NOT NULL REFERENCES kind (number) DEFERRABLE INITIALLY IMMEDIATE,
  place      BIGINT NOT NULL,
  generation BIGINT NOT NULL,
  id         BYTEA NOT NULL,
  PRIMARY KEY (kind, place)
);
-- A claim ends with the lease of its process, so it need not survive a crash of the database.
ALTER TABLE node_claim SET UNLOGGED;
