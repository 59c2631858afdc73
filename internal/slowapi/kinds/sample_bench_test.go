// Benchmarks of sounds.
package kinds

import (
	"io"
	"testing"
)

func BenchmarkWAV(b *testing.B) { benchmarkSound(b, wavOf(7, maxAudio, 2)) }
func BenchmarkMP3(b *testing.B) { benchmarkSound(b, mp3Of(7, maxAudio, 2)) }

func benchmarkSound(b *testing.B, sound *io.SectionReader) {
	b.ReportAllocs()
	b.SetBytes(sound.Size())
	for b.Loop() {
		_, _ = sound.Seek(0, io.SeekStart)
		if n, err := io.Copy(io.Discard, struct{ io.Reader }{sound}); n != sound.Size() || err != nil {
			b.Fatal(n, err)
		}
	}
}
