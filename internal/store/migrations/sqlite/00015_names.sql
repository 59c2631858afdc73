-- In PostgreSQL the tables of ids get smaller rows (postgres/00015_names.sql).
-- +goose Up

SELECT 1;
