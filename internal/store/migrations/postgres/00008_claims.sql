-- What one of the processes on the database does alone (nodes/claims.go).
-- +goose Up

CREATE TABLE node_claim (
  key    BIGINT PRIMARY KEY,
  holder TEXT COLLATE "C" NOT NULL
);
