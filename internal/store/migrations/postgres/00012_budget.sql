-- How the processes on the database divide the budgets of requests (nodes.go).
-- +expand
-- +goose Up

CREATE TABLE budget (
  writes BIGINT NOT NULL,
  parts  TEXT COLLATE "C" NOT NULL
);

INSERT INTO budget VALUES (0, '{}');
