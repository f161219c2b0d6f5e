package outfile

import (
	"fmt"
	"io"

	"thalweg/internal/base/fault"
	"thalweg/internal/lang/script"
)

// Number is a number in a sheet, shown with so many digits behind the point; 0: as Excel does by itself.
type Number struct {
	Value float64
	Scale int
}

// SheetDigits is the number of digits that Excel keeps of a number: who has more writes a text.
const SheetDigits = sheetDigits

// StreamSheet writes an Excel file with one sheet as its rows come: fill gives them, the header first, with columns for
// what is said of cells. A cell is nil, a bool, a string, which stays a text whatever it looks like, or a Number.
func StreamSheet(to io.Writer, sheet string, fill func(add func(cells []any) error) error) error {
	return writeSheet(to, sheet, func(rows *sheetRows) error {
		var header []any
		row := 0
		return fill(func(cells []any) error {
			if row++; row == 1 {
				header = cells
			}
			if row > script.SheetRowsMax || len(cells) > script.SheetColumnsMax {
				return &fault.Error{Kind: fault.Script, Hint: "write CSV or Parquet, or take less",
					Message: fmt.Sprintf("a sheet has at most %d rows with its header, and %d columns", script.SheetRowsMax,
						script.SheetColumnsMax)}
			}
			out := make([]any, len(cells))
			for i, cell := range cells {
				switch v := cell.(type) {
				case string:
					if message, hint := notInCell(v); message != "" {
						return &fault.Error{Kind: fault.Script, Hint: hint,
							Message: fmt.Sprintf("row %d, column %v: %s", row, header[i], message)}
					}
					out[i] = v
				case Number:
					out[i] = styled{v.Value, styleOfScale(v.Scale)}
				default:
					out[i] = cell
				}
			}
			return rows.add(row, out)
		})
	})
}

// styleOfScale is the style of numbers with so many digits behind the point, among sheetStyles.
func styleOfScale(scale int) int {
	const before = 2 // dayStyle and dateStyle
	if scale < 1 || scale > sheetScaleMax {
		return 0
	}
	return before + scale
}
