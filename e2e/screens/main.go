// Command screens takes pictures of the viewer's pages, for the documents and
// for those who change them.
package main

import (
	"bytes"
	"cmp"
	"context"
	"flag"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"understudy/e2e/binary"
	"understudy/e2e/browser"
	"understudy/e2e/pages"
)

func main() {
	program := flag.String("binary", "../bin/understudy", "the built program")
	folder := flag.String("to", "../.cache/screens", "where the pictures go")
	docs := flag.String("docs", "../docs/screens", "where those that documents show go")
	only := flag.String("only", "", "pages to take, comma-separated; all when empty")
	flag.Parse()
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Minute)
	defer cancel()
	if err := run(ctx, *program, *folder, *docs, *only); err != nil {
		fmt.Fprintln(os.Stderr, "screens:", err)
		os.Exit(1)
	}
}

// shown are the pages whose middling pictures documents show.
var shown = []string{"list", "conversation", "credential"}

// camera takes pictures of one viewer.
type camera struct {
	tab                  context.Context
	viewer, folder, docs string
	only                 []string
	sideways             []string // pages wider than their screen
}

func run(ctx context.Context, program, folder, docs, only string) error {
	program, err := filepath.Abs(program)
	if err != nil {
		return err
	}
	for _, f := range []string{folder, docs} {
		if f == "" {
			continue
		}
		if err := os.MkdirAll(f, 0o755); err != nil {
			return err
		}
	}
	dir, err := os.MkdirTemp("", "understudy-screens-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	data := filepath.Join(dir, "demo")
	if err := pages.Fall(ctx, data); err != nil {
		return err
	}
	demo, err := binary.Start(program, dir, binary.Demo("--data", data, "--latency", "200ms")...)
	if err != nil {
		return err
	}
	defer demo.Kill()
	c := &camera{viewer: demo.URL("viewer"), folder: folder, docs: docs}
	if only != "" {
		c.only = strings.Split(only, ",")
	}
	if err := warm(c.viewer, demo.URL("twilio")); err != nil {
		return err
	}
	all, err := pages.Find(c.viewer)
	if err != nil {
		return err
	}
	past, err := pages.Alter(c.viewer, demo.URL("slowapi"))
	if err != nil {
		return err
	}
	all = append(all, past...)
	var end func()
	if c.tab, end, err = browser.Open(ctx); err != nil {
		return err
	}
	defer browser.Close()
	defer end()
	for _, p := range all {
		if err := c.take(p.Name, p.Path); err != nil {
			return err
		}
	}
	if err := c.house(program, dir, demo.URL("slowapi")); err != nil {
		return err
	}
	down, err := pages.Down(c.viewer, demo.URL("slowapi"))
	if err != nil {
		return err
	}
	for _, p := range down {
		if err := c.take(p.Name, p.Path); err != nil {
			return err
		}
	}
	if len(c.sideways) > 0 {
		return fmt.Errorf("wider than their screen: %s", strings.Join(c.sideways, ", "))
	}
	return nil
}

// take makes the pictures of one page.
func (c *camera) take(name, path string) error {
	if len(c.only) > 0 && !slices.Contains(c.only, name) {
		return nil
	}
	if err := chromedp.Do(c.tab, chromedp.Navigate(c.viewer+path), chromedp.WaitReady(chromedp.CSS("footer"))); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return c.here(name)
}

// here makes the pictures of the page at hand, in every size and colour scheme.
func (c *camera) here(name string) error {
	if len(c.only) > 0 && !slices.Contains(c.only, name) {
		return nil
	}
	for _, width := range []int64{360, 768, 1024, 1280, 1920} {
		for _, scheme := range []string{"light", "dark"} {
			if err := c.shoot(name, scheme, width); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	return nil
}

// tallest is the height up to which a page is taken whole.
const tallest = 2400

func (c *camera) shoot(name, scheme string, width int64) error {
	media := emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
		{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: "reduce"}}} // no colour is on its way
	if _, err := chromedp.Call(c.tab, emulation.SetEmulatedMedia, media); err != nil {
		return err
	}
	height := map[int64]int64{360: 740, 768: 1024, 1024: 720, 1280: 800, 1920: 1080}[width]
	if err := c.size(width, height); err != nil {
		return err
	}
	if c.docs != "" && width == 1024 && slices.Contains(shown, name) {
		shot, err := chromedp.Run(c.tab, chromedp.CaptureScreenshot())
		if err != nil {
			return err
		}
		if shot, err = shrink(shot); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(c.docs, name+"-"+scheme+".png"), shot, 0o644); err != nil {
			return err
		}
	}
	box, err := chromedp.Run(c.tab, chromedp.Evaluate[[]int64](`[document.documentElement.scrollWidth, document.documentElement.scrollHeight]`))
	if err != nil {
		return err
	}
	if box[0] > width {
		c.sideways = append(c.sideways, fmt.Sprintf("%s at %d px (%d)", name, width, box[0]))
	}
	if err := c.size(width, min(max(box[1], height), tallest)); err != nil {
		return err
	}
	if err := chromedp.Do(c.tab, chromedp.Evaluate[chromedp.Void](`new Promise(drawn => requestAnimationFrame(() => requestAnimationFrame(drawn)))`)); err != nil {
		return err
	}
	shot, err := chromedp.Run(c.tab, chromedp.CaptureScreenshot())
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(c.folder, fmt.Sprintf("%s-%d-%s.png", name, width, scheme)), shot, 0o644)
}

func (c *camera) size(width, height int64) error {
	_, err := chromedp.Call(c.tab, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: width, Height: height, DeviceScaleFactor: 1, Mobile: width < 600})
	return err
}

// shrink packs a picture with 256 colours: the most frequent ones, and for
// every other the nearest of them.
func shrink(shot []byte) ([]byte, error) {
	img, err := png.Decode(bytes.NewReader(shot))
	if err != nil {
		return nil, err
	}
	count := map[color.RGBA]int{}
	box := img.Bounds()
	at := func(x, y int) color.RGBA { return color.RGBAModel.Convert(img.At(x, y)).(color.RGBA) }
	for y := box.Min.Y; y < box.Max.Y; y++ {
		for x := box.Min.X; x < box.Max.X; x++ {
			count[at(x, y)]++
		}
	}
	frequent := slices.SortedFunc(maps.Keys(count), func(a, b color.RGBA) int {
		return cmp.Or(count[b]-count[a], int(a.R)-int(b.R), int(a.G)-int(b.G), int(a.B)-int(b.B))
	})
	colours := color.Palette{}
	for _, c := range frequent[:min(256, len(frequent))] {
		colours = append(colours, c)
	}
	nearest := map[color.RGBA]uint8{}
	for c := range count {
		nearest[c] = uint8(colours.Index(c))
	}
	small := image.NewPaletted(box, colours)
	for y := box.Min.Y; y < box.Max.Y; y++ {
		for x := box.Min.X; x < box.Max.X; x++ {
			small.SetColorIndex(x, y, nearest[at(x, y)])
		}
	}
	var out bytes.Buffer
	enc := png.Encoder{CompressionLevel: png.BestCompression}
	if err := enc.Encode(&out, small); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// warm reads a little, as programs and people do, so that the home page has
// something to tell.
func warm(viewer, dropIn string) error {
	client := http.Client{Timeout: 20 * time.Second}
	const account = "AC00000000000000000000000000000001"
	lists := []string{"/Calls.json", "/Messages.json", "/IncomingPhoneNumbers.json", "/Calls.json?Status=busy", "/Messages.json?PageSize=20"}
	for i := range 40 {
		req, err := http.NewRequest(http.MethodGet, dropIn+"/2010-04-01/Accounts/"+account+lists[i%len(lists)], nil)
		if err != nil {
			return err
		}
		req.SetBasicAuth(account, "understudydemotoken")
		resp, err := client.Do(req)
		if err != nil {
			return err
		}
		if _, err := io.Copy(io.Discard, resp.Body); err != nil {
			return err
		}
		_ = resp.Body.Close()
	}
	for _, kind := range []string{"accounts", "conferences", "recordings", "alerts"} {
		resp, err := client.Get(viewer + "/twilio/" + kind)
		if err != nil {
			return err
		}
		_ = resp.Body.Close()
	}
	return nil
}
