-- What one of the processes on the database does alone (nodes/claims.go).
-- +goose Up

-- key is a hash of what is done, holder the id of the node that does it. The claim of a node whose lease has ended is void.
CREATE TABLE node_claim (
  key    INTEGER PRIMARY KEY,
  holder TEXT    NOT NULL
) STRICT;
