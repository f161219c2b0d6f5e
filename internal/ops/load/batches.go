package load

import "github.com/HdrHistogram/hdrhistogram-go"

const (
	// batchesMost bounds the batches of a window: long ones hardly depend on each other.
	batchesMost = 10
	// partLeast are the fewest responses that have a p99.
	partLeast = 1000
)

// Batch is a part of a window, with responses by kind.
type Batch struct {
	Seconds float64
	Of      [2]*hdrhistogram.Histogram // nil: none
}

// Batches cuts a window into parts of equally many seconds, which stand for repeated measurements. Seconds that are
// left over at its end are in none.
func (r Result) Batches() []Batch {
	width := blockWidth(len(r.Seconds))
	blocks := int(r.Took.Seconds()) / width // whole ones
	each := (blocks + batchesMost - 1) / batchesMost
	if blocks < 2 {
		return nil
	}
	out := make([]Batch, blocks/each)
	for i := range out {
		out[i].Seconds = float64(each * width)
		for kind, m := range r.Of {
			for _, b := range m.Blocks[min(i*each, len(m.Blocks)):min((i+1)*each, len(m.Blocks))] {
				if out[i].Of[kind] == nil {
					out[i].Of[kind] = newSmallHistogram()
				}
				out[i].Of[kind].Merge(b)
			}
		}
	}
	return out
}

// parts cuts the responses of a window into batchesMost parts at most, of partLeast responses at least, without a rest.
func (m Measured) parts() (out []*hdrhistogram.Histogram) {
	each := (len(m.Blocks) + batchesMost - 1) / batchesMost
	blocks := 0 // of the last part
	for _, b := range m.Blocks {
		if last := len(out) - 1; last >= 0 && (blocks < each || out[last].TotalCount() < partLeast) {
			out[last].Merge(b)
			blocks++
			continue
		}
		out, blocks = append(out, b.Clone()), 1
	}
	if last := len(out) - 1; last > 0 && out[last].TotalCount() < partLeast {
		out[last-1].Merge(out[last])
		out = out[:last]
	}
	return out
}

// blockWidth is how many seconds a block of a window has.
func blockWidth(seconds int) int {
	width := 1
	for (seconds-1)/width >= blocksMost {
		width *= 2
	}
	return width
}

// halves merges blocks in twos.
func halves(blocks []*hdrhistogram.Histogram) (out []*hdrhistogram.Histogram) {
	for i, b := range blocks {
		if i%2 == 0 {
			out = append(out, b)
		} else {
			out[i/2].Merge(b)
		}
	}
	return out
}

// widened returns the blocks of a window as those of a longer one. Those that are given stay as they are.
func widened(blocks []*hdrhistogram.Histogram, seconds, longer int) []*hdrhistogram.Histogram {
	from, to := blockWidth(seconds), blockWidth(longer)
	if from == to {
		return blocks
	}
	out := make([]*hdrhistogram.Histogram, len(blocks))
	for i, b := range blocks {
		out[i] = b.Clone()
	}
	for ; from < to; from *= 2 {
		out = halves(out)
	}
	return out
}
