-- Places are given behind, as the indexes are filled.
-- +goose Up

-- Up to which record places are given; a file of before there were any has none.
ALTER TABLE built ADD COLUMN places INTEGER NOT NULL DEFAULT 9223372036854775807;
UPDATE built SET places = 0 WHERE EXISTS (SELECT 1 FROM kind WHERE terms IS NULL);
