// Fall: a balance that has fallen for ten days, so that there is something to forecast.

package pages

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"understudy"
	"understudy/internal/datadir"
	"understudy/internal/store"
)

// Fall makes a data folder in which the balance falls, now faster, now slower.
func Fall(ctx context.Context, data string) error {
	if err := os.Mkdir(data, 0o700); err != nil {
		return err
	}
	db, err := store.Open(ctx, store.Options{Path: filepath.Join(data, datadir.StoreFile)})
	if err != nil {
		return err
	}
	var samples []understudy.Sample
	left, now := 156.0, time.Now() // it ends at what the demo begins with
	for i := range 240 {
		left -= 0.1 + 0.02*float64(i*7%11)
		samples = append(samples, understudy.Sample{At: now.Add(time.Duration(i-240) * time.Hour), Value: fmt.Sprintf("%.5f", left)})
	}
	err = db.Series.AddSamples(ctx, understudy.Series{Source: "twilio", Kind: "balance", Field: "balance"}, samples...)
	if closed := db.Close(); err == nil {
		err = closed
	}
	return err
}
