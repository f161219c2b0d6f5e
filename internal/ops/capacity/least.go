package capacity

import "math"

// singular is the pivot, of columns of length 1, below which they do not tell their parts apart.
const singular = 1e-8

// least returns the parts, none below 0, for which the squares of want - rows·parts are least. It tries every set of
// parts that are not 0: three have seven sets, and the best answer of those without a negative part is the exact one.
func least(rows [][]float64, want []float64) []float64 {
	width := len(rows[0])
	var best []float64
	squares := math.Inf(1)
	for set := 1; set < 1<<width; set++ {
		var columns []int
		for k := range width {
			if set&(1<<k) != 0 {
				columns = append(columns, k)
			}
		}
		parts, ok := solved(rows, want, columns)
		if !ok {
			continue
		}
		if sum := squaresOf(rows, want, parts); sum < squares {
			best, squares = parts, sum
		}
	}
	return best
}

func squaresOf(rows [][]float64, want, parts []float64) (sum float64) {
	for i, row := range rows {
		miss := want[i] - dot(row, parts)
		sum += miss * miss
	}
	return sum
}

func dot(a, b []float64) (sum float64) {
	for i := range a {
		sum += a[i] * b[i]
	}
	return sum
}

// solved returns the parts with the least squares of which those of the columns alone are not 0; false: one is
// negative, or the rows do not tell them apart.
func solved(rows [][]float64, want []float64, columns []int) ([]float64, bool) {
	inverse, ok := invertedSquares(rows, columns)
	if !ok {
		return nil, false
	}
	parts := make([]float64, len(rows[0]))
	for a, k := range columns {
		for b, l := range columns {
			for i, row := range rows {
				parts[k] += inverse[a][b] * row[l] * want[i]
			}
		}
		if parts[k] < 0 {
			return nil, false
		}
	}
	return parts, true
}

// invertedSquares returns the inverse of rowsᵀ·rows for some of their columns; false: it has none.
func invertedSquares(rows [][]float64, columns []int) ([][]float64, bool) {
	n := len(columns)
	lengths := make([]float64, n)
	for a, k := range columns {
		for _, row := range rows {
			lengths[a] += row[k] * row[k]
		}
		if lengths[a] = math.Sqrt(lengths[a]); !(lengths[a] > 0) || math.IsInf(lengths[a], 0) {
			return nil, false
		}
	}
	both := make([][]float64, n) // the squares of columns of length 1, and beside them what becomes their inverse
	for a, k := range columns {
		both[a] = make([]float64, 2*n)
		both[a][n+a] = 1
		for b, l := range columns {
			for _, row := range rows {
				both[a][b] += row[k] / lengths[a] * row[l] / lengths[b]
			}
		}
	}
	if !eliminate(both) {
		return nil, false
	}
	for a := range both {
		both[a] = both[a][n:]
		for b := range both[a] {
			both[a][b] /= lengths[a] * lengths[b]
		}
	}
	return both, true
}

// eliminate makes the left half of a positive matrix the unit matrix, row by row; false: that is not possible.
func eliminate(m [][]float64) bool {
	for i := range m {
		pivot := m[i][i]
		if !(pivot > singular) {
			return false
		}
		for j := range m[i] {
			m[i][j] /= pivot
		}
		for k := range m {
			if factor := m[k][i]; k != i && factor != 0 {
				for j := range m[k] {
					m[k][j] -= factor * m[i][j]
				}
			}
		}
	}
	return true
}
