-- How the processes on the database divide the budgets of requests (nodes.go).
-- +expand
-- +goose Up

-- writes counts the changes of parts, so that a process changes only what it has read.
CREATE TABLE budget (
  writes INTEGER NOT NULL,
  parts  TEXT    NOT NULL
) STRICT;

INSERT INTO budget VALUES (0, '{}');
