-- Kinds that are new from here on store their ids in more forms (db.AllForms), which older programs do not know.
-- +goose Up

SELECT 1;
