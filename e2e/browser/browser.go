// Browser: Debian's chromium. The tests of a program share one, in which each tab has cookies and storage of its own.

// Package browser opens pages in a real browser.
package browser

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"sync"

	"github.com/chromedp/chromedp"

	"understudy/e2e/rig"
)

// names are what Debian and others call it.
var names = []string{"chromium", "chromium-browser", "google-chrome"}

// running is the browser of this program. It is started with the first tab, and again if it has ended: a start takes more
// than a second of processor time.
var running struct {
	sync.Mutex
	browser context.Context
	end     func() // ends the browser and removes its files
}

// Close ends the browser. Tests need not call it.
func Close() {
	running.Lock()
	defer running.Unlock()
	if running.end != nil {
		running.end()
	}
	running.browser, running.end = nil, nil
}

// start returns the context of the running browser. The error says what to install.
func start() (context.Context, error) {
	running.Lock()
	defer running.Unlock()
	if running.browser != nil && running.browser.Err() == nil {
		return running.browser, nil
	}
	path, err := "", error(nil)
	for _, name := range names {
		if path, err = exec.LookPath(name); err == nil {
			break
		}
	}
	if err != nil {
		return nil, fmt.Errorf("browser: none of %v is installed; on Debian: apt-get install chromium", names)
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path), chromedp.Flag("disable-background-networking", true), chromedp.Flag("disable-component-update", true),
		chromedp.Flag("force-color-profile", "srgb"), chromedp.Flag("hide-scrollbars", true),
		chromedp.Flag("ignore-certificate-errors-spki-list", rig.TrustedKeyHash()))
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox)
	}
	ctx, end := chromedp.NewExecAllocator(context.Background(), options...)
	browser, _ := chromedp.NewContext(ctx)
	if err := chromedp.Do(browser); err != nil {
		end()
		return nil, fmt.Errorf("browser: start %s: %w", path, err)
	}
	if running.end == nil {
		rig.AtEnd(Close)
	}
	running.browser, running.end = browser, func() {
		end()
		chromedp.FromContext(browser).Allocator.Wait()
	}
	return browser, nil
}

// Open opens a tab that shares nothing with other tabs. The returned context is the tab; close ends it, as the end of ctx does.
func Open(ctx context.Context) (tab context.Context, close func(), err error) {
	browser, err := start()
	if err != nil {
		return nil, nil, err
	}
	tab, end := chromedp.NewContext(browser, chromedp.WithNewBrowserContext())
	stop := context.AfterFunc(ctx, end)
	if err := chromedp.Do(tab); err != nil {
		stop()
		end()
		return nil, nil, fmt.Errorf("browser: open a tab: %w", err)
	}
	return tab, func() { stop(); end() }, nil
}
