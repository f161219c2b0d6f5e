package expr

import (
	"strings"
	"sync"
)

// foreign says what functions that people know of SQL, Python, Go and sheets are
// called here; "": they are not there.
var foreign = sync.OnceValue(func() map[string]string {
	out := map[string]string{}
	for _, f := range foreignFunctions() {
		for name := range strings.FieldsSeq(f.names) {
			out[name] = f.here
		}
	}
	return out
})

type foreignFunction struct{ here, names string }

func foreignFunctions() []foreignFunction {
	return []foreignFunction{
		{"iif(condition, x, y)", "if ifelse if_else case when decode switch choose np.where"},
		{"coalesce(x, y)", "nvl ifnull nz zn fillna nvl2"},
		{"is_null(x), in iif(condition, x, y) if need be", "isnull isna isblank is_nan isnan nullif"},
		{"string(x)", "str text tostring to_string repr itoa strconv.itoa"},
		{`time.Format(t, "2006-01-02")`, "to_char date_format strftime format_date formatdate"},
		{"int(x)", "integer bigint smallint long to_int toint parseint atoi strconv.atoi to_number trunc truncate " +
			"math.trunc fix"},
		{"float(x)", "double real to_double to_float tofloat number parsefloat"},
		{"decimal(x, 18, 4), decimal2(x)", "numeric to_decimal todecimal"},
		{"a comparison, such as x == 1", "bool boolean to_bool"},
		{"int(x), float(x), decimal2(x), decimal(x, 18, 4), string(x)",
			"cast convert try_cast safe_cast astype typecast"},
		{"strings.ReplaceAll(s, old, new)", "replace translate str.replace strings.replace"},
		{"x + y", "concat concat_ws concatenate strcat join strings.join"},
		{"strings.Contains(s, part)",
			"instr position strpos charindex locate find search contains includes indexof strings.index"},
		{"strings.HasPrefix(s, part)", "startswith starts_with hasprefix prefix"},
		{"strings.HasSuffix(s, part)", "endswith ends_with hassuffix suffix"},
		{"re.MatchString(pattern, s)",
			"like ilike rlike regexp_like regexp_matches regexp_match regexmatch match re.match re.search"},
		{"int(len(s)), which counts bytes", "length char_length character_length strlen size"},
		{`fmt.Sprintf("%05d", x)`, "format printf sprintf fmt.sprint"},
		{"iif(x < 0, -x, x)", "abs math.abs fabs"},
		{"iif(x > y, x, y)", "greatest least math.max math.min"},
		{"x % y", "mod math.mod fmod"},
		{"math.Sqrt(x)", "sqrt"},
		{"x * x", "pow power math.pow"},
		{"round(x, 2)", "math.round"},
		{"time.Now()", "now getdate sysdate today current_timestamp current_date localtimestamp"},
		{`time.Parse("2006-01-02", s)`,
			"to_date to_datetime to_timestamp str_to_date strptime parse_date parsedate date_parse datevalue"},
		{"time.DiffMilli(a, b); a - b of two dates is their days",
			"datediff date_diff timestampdiff timestamp_diff days_between age"},
		{"d + 7, d - 7 of a date", "dateadd date_add adddate date_sub datesub"},
		{`int(time.Format(t, "2006"))`, "year"},
		{`int(time.Format(t, "1"))`, "month"},
		{`int(time.Format(t, "2"))`, "day dayofmonth"},
		{`int(time.Format(t, "15"))`, "hour"},
		{`int(time.Format(t, "2006"))`, "extract date_part datepart"},
		{"time.Unix(t)", "epoch unix_timestamp"},
		{"count_if(condition)", "countif"},
		{"sum_if(x, condition)", "sumif"},
		{"avg_if(x, condition)", "averageif avgif"},
		{"avg(x)", "average mean"},
		{"string_agg(s, sep)", "group_concat listagg array_agg"},
		{"", "upper ucase lower lcase initcap capitalize proper title strings.toupper strings.tolower"},
		{"", "substr substring left right mid slice trim ltrim rtrim btrim strip lstrip rstrip strings.trimspace " +
			"strings.trim"},
		{"", "lpad rpad zfill repeat reverse split split_part strings.split regexp_replace regexp_extract " +
			"regexp_substr re.sub"},
		{"", "floor ceil ceiling math.floor math.ceil exp ln log log10 math.log sign sin cos random rand"},
		{"", "date_trunc datetrunc trunc_date last_day add_months months_between weekday dayofweek dayofyear week " +
			"weekofyear quarter minute second"},
		{"", "count_distinct countdistinct approx_count_distinct median stddev variance percentile quantile mode " +
			"first last any_value"},
		{"", "row_number rank dense_rank ntile lag lead first_value last_value over"},
		{"", "md5 sha1 sha256 hash uuid json_extract vlookup xlookup lookup"},
	}
}

// elsewhere is the hint about functions that expressions do not have.
const elsewhere = "expressions have nothing like it: compute it in a sql node, which has DuckDB's functions, or in " +
	"Python with py_calc"

// foreignHint says what a function that people know of elsewhere is called here.
func foreignHint(name string) (hint string, known bool) {
	here, known := foreign()[strings.ToLower(name)]
	switch {
	case !known:
		return "", false
	case here == "":
		return elsewhere, true
	}
	return "here it is " + here, true
}
