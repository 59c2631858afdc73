-- Which steps of the schema programs know (migrations.go).
-- +goose Up

-- needs is the last step that a program must know to use the database, knows the last one that a process knows.
ALTER TABLE counter ADD COLUMN needs INTEGER NOT NULL DEFAULT 0;
ALTER TABLE node    ADD COLUMN knows INTEGER NOT NULL DEFAULT 8;
