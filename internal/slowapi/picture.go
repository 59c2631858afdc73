// Pictures: the content of media, drawn from the seed.
package slowapi

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"time"
)

const tagPictures = 0x706963

// pictureOf draws the picture a medium holds. The same medium is the same bytes.
func pictureOf(m *medium) content {
	d := drawFor(m.s.seed, tagPictures, m.i+places*int64(m.s.account)<<40)
	drawn := paint(&d)
	var out bytes.Buffer
	sort := m.contentType()
	if sort == "image/png" {
		_ = png.Encode(&out, drawn) // a buffer takes everything
	} else {
		_ = jpeg.Encode(&out, drawn, &jpeg.Options{Quality: 80})
	}
	return content{
		ReadSeeker: bytes.NewReader(out.Bytes()), sort: sort,
		tag: fmt.Sprintf(`"%016x"`, uint64(d)), modified: time.Unix(m.created, 0),
	}
}

// paint fills a few hundred pixels with a sky and discs in two or three colours.
func paint(d *draw) *image.Paletted {
	width, height := 240+16*d.below(16), 180+12*d.below(16)
	colours := make(color.Palette, 32)
	top, bottom, disc := shade(d), shade(d), shade(d)
	for i := range 16 {
		colours[i] = blend(top, bottom, i, 15)
		colours[16+i] = blend(disc, top, i, 30)
	}
	type circle struct{ x, y, r int }
	circles := make([]circle, 3+d.below(5))
	for i := range circles {
		circles[i] = circle{d.below(width), d.below(height), 15 + d.below(60)}
	}
	out := image.NewPaletted(image.Rect(0, 0, width, height), colours)
	for y := range height {
		line := out.Pix[y*out.Stride:][:width]
		for x := range line {
			line[x] = byte(y * 15 / height)
			for _, c := range circles {
				if dx, dy := x-c.x, y-c.y; dx*dx+dy*dy < c.r*c.r {
					line[x] = 16 + byte((dx*dx+dy*dy)*15/(c.r*c.r))
				}
			}
		}
	}
	return out
}

// shade is some colour.
func shade(d *draw) color.RGBA {
	bits := d.next()
	return color.RGBA{byte(bits), byte(bits >> 8), byte(bits >> 16), 255}
}

// blend is a colour part of the way from one to another.
func blend(from, to color.RGBA, part, of int) color.RGBA {
	mid := func(a, b byte) byte { return byte(int(a) + (int(b)-int(a))*part/of) }
	return color.RGBA{mid(from.R, to.R), mid(from.G, to.G), mid(from.B, to.B), 255}
}
