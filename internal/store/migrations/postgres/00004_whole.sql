-- Pages that are stored whole: of them list is 2 more.
-- +goose Up

CREATE INDEX page_whole ON page (kind) WHERE list > 1;
