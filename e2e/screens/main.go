// Command screens takes pictures of the viewer's pages, for the documents and
// for those who change them.
package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
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
)

func main() {
	program := flag.String("binary", "../bin/understudy", "the built program")
	folder := flag.String("to", "../docs/screens", "where the pictures go")
	flag.Parse()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	if err := run(ctx, *program, *folder); err != nil {
		fmt.Fprintln(os.Stderr, "screens:", err)
		os.Exit(1)
	}
}

// picture is one page in one size and one colour scheme.
type picture struct {
	name, path string
	width      int64
	dark       bool
}

func run(ctx context.Context, program, folder string) error {
	program, err := filepath.Abs(program)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	demo, err := binary.Start(program, ".", binary.Demo("--latency", "400ms")...)
	if err != nil {
		return err
	}
	defer demo.Kill()
	viewer, api := demo.URL("viewer"), demo.URL("slowapi")
	record, err := newestMessage(viewer)
	if err != nil {
		return err
	}
	if err := warm(viewer, demo.URL("twilio")); err != nil {
		return err
	}
	tab, end, err := browser.Open(ctx)
	if err != nil {
		return err
	}
	defer end()
	pages := [][2]string{
		{"home", "/"}, {"list", "/twilio/calls"}, {"filtered", "/twilio/calls?Status=busy"},
		{"detail", "/twilio/messages/" + record}, {"missing", "/twilio/calls/CA00000000000000000000000000000000"},
	}
	if err := takeAll(tab, viewer, folder, pages); err != nil {
		return err
	}
	if err := fault(api, `{"rules":[{"match":"","status":503}]}`); err != nil {
		return err
	}
	return takeAll(tab, viewer, folder, [][2]string{{"held", "/twilio/messages?PageSize=20"}, {"outage", "/twilio/messages?PageSize=100"}})
}

func takeAll(tab context.Context, viewer, folder string, pages [][2]string) error {
	for _, page := range pages {
		for _, width := range []int64{360, 1024, 1920} {
			for _, dark := range []bool{false, true} {
				if err := take(tab, viewer, folder, picture{page[0], page[1], width, dark}); err != nil {
					return fmt.Errorf("%s: %w", page[1], err)
				}
			}
		}
	}
	return nil
}

// take makes one picture of the first screen of a page.
func take(tab context.Context, viewer, folder string, p picture) error {
	scheme := "light"
	if p.dark {
		scheme = "dark"
	}
	height := map[int64]int64{360: 740, 1024: 720, 1920: 1080}[p.width]
	metrics := emulation.SetDeviceMetricsOverrideParams{Width: p.width, Height: height, DeviceScaleFactor: 1, Mobile: p.width < 600}
	if _, err := chromedp.Call(tab, emulation.SetDeviceMetricsOverride, metrics); err != nil {
		return err
	}
	media := emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}}
	if _, err := chromedp.Call(tab, emulation.SetEmulatedMedia, media); err != nil {
		return err
	}
	if err := chromedp.Do(tab, chromedp.Navigate(viewer+p.path), chromedp.WaitReady(chromedp.CSS("footer"))); err != nil {
		return err
	}
	shot, err := chromedp.Run(tab, chromedp.CaptureScreenshot())
	if err != nil {
		return err
	}
	small, err := shrink(shot)
	if err != nil {
		return err
	}
	name := filepath.Join(folder, fmt.Sprintf("%s-%s-%d.png", p.name, scheme, p.width))
	if p.width == 1024 { // the one documents show
		name = filepath.Join(folder, fmt.Sprintf("%s-%s.png", p.name, scheme))
	}
	return os.WriteFile(name, small, 0o644)
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
	resp, err := client.Get(viewer + "/twilio/accounts")
	if err != nil {
		return err
	}
	return resp.Body.Close()
}

// newestMessage finds a record to show.
func newestMessage(viewer string) (string, error) {
	client := http.Client{Timeout: 20 * time.Second}
	resp, err := client.Get(viewer + "/twilio/messages.json")
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	var page struct {
		Messages []struct{ Sid, Body, Status string }
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, 10<<20))
	if err != nil {
		return "", err
	}
	if err := json.Unmarshal(body, &page); err != nil || len(page.Messages) == 0 {
		return "", fmt.Errorf("no messages: %d %.200s", resp.StatusCode, body)
	}
	for _, m := range page.Messages {
		if len(m.Body) > 60 && m.Status == "delivered" {
			return m.Sid, nil
		}
	}
	return page.Messages[0].Sid, nil
}

func fault(api, rules string) error {
	resp, err := http.Post(api+"/-/faults", "application/json", strings.NewReader(rules))
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("faults: %s", resp.Status)
	}
	return nil
}
