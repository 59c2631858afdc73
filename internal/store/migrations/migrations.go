// Package migrations has the schema of the store, one numbered file for each step and engine.
package migrations

import (
	"context"
	"database/sql"
	"embed"
	"fmt"

	"github.com/pressly/goose/v3"
)

// Newest is the number of the last migration.
const Newest = 8

// The folders of the engines. Each has the same steps.
const (
	SQLite     = "sqlite"
	PostgreSQL = "postgres"
)

//go:embed sqlite/*.sql postgres/*.sql
var files embed.FS

// Read returns the migrations of a folder. The database runs each file whole, in a transaction. Goose's own reader of
// SQL takes a buffer of 4 MiB for each line of a file.
func Read(folder string) ([]*goose.Migration, error) {
	names, err := files.ReadDir(folder)
	if err != nil {
		return nil, fmt.Errorf("migrations: %w", err)
	}
	steps := make([]*goose.Migration, len(names))
	for i, name := range names {
		number, err := goose.NumericComponent(name.Name())
		if err != nil {
			return nil, fmt.Errorf("migrations: %w", err)
		}
		text, err := files.ReadFile(folder + "/" + name.Name())
		if err != nil {
			return nil, fmt.Errorf("migrations: %w", err)
		}
		steps[i] = goose.NewGoMigration(number, &goose.GoFunc{RunTx: func(ctx context.Context, tx *sql.Tx) error {
			_, err := tx.ExecContext(ctx, string(text))
			return err
		}}, nil)
	}
	return steps, nil
}
