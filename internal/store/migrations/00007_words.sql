-- Words of records are found.
-- +goose Up

-- The words of a record in one shape, by columns of classes of fields; rowid is
-- its spot (stream.go). They come cut and folded (words.go): the tokenizer only
-- parts them at spaces. What is taken out leaves nothing behind.
CREATE VIRTUAL TABLE words USING fts5(body, plain, plain2, plain3, phone, phone2, name, url, other,
  content = '', columnsize = 0, tokenize = 'ascii');
INSERT INTO words (words, rank) VALUES ('secure-delete', 1);

-- The words that are in it.
CREATE VIRTUAL TABLE word USING fts5vocab(words, instance);

-- Which fields of a kind are text, and how they are cut (textRule); NULL: that
-- is to be found out.
ALTER TABLE kind ADD COLUMN words TEXT;

-- Up to which record the indexes of words and terms are built: one row. Saves
-- keep them right up to there, the others come later.
CREATE TABLE built (
  words INTEGER NOT NULL,
  terms INTEGER NOT NULL
) STRICT;
INSERT INTO built SELECT CASE WHEN record = 0 THEN 9223372036854775807 ELSE 0 END, 9223372036854775807 FROM counter;
