package engine

import (
	"database/sql"
	"database/sql/driver"
	"fmt"

	duckdb "github.com/duckdb/duckdb-go/v2"

	"thalweg/internal/lang/expr"
)

// goFunction lets DuckDB call a function of expressions that is written in Go.
type goFunction struct {
	config duckdb.ScalarFuncConfig
	call   func([]any) any
}

func (f *goFunction) Config() duckdb.ScalarFuncConfig { return f.config }

func (f *goFunction) Executor() duckdb.ScalarFuncExecutor {
	return duckdb.ScalarFuncExecutor{RowExecutor: f.row}
}

// row computes one value. A panic must not cross into C++.
func (f *goFunction) row(values []driver.Value) (out any, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("a function written in Go failed: %v", p)
		}
	}()
	args := make([]any, len(values))
	for i, v := range values {
		args[i] = v
	}
	out = f.call(args)
	if failure, failed := out.(error); failed {
		return nil, failure
	}
	return out, nil
}

// RegisterGo makes the functions that are written in Go known to a connection.
func RegisterGo(conn *sql.Conn) error {
	for _, f := range expr.GoFunctions() {
		config := duckdb.ScalarFuncConfig{}
		var err error
		if config.ResultTypeInfo, err = typeInfo(f.Result); err != nil {
			return err
		}
		for _, t := range f.Args {
			info, err := typeInfo(t)
			if err != nil {
				return err
			}
			config.InputTypeInfos = append(config.InputTypeInfos, info)
		}
		if f.More {
			if config.VariadicTypeInfo, err = duckdb.NewTypeInfo(duckdb.TYPE_ANY); err != nil {
				return err
			}
		}
		if err := duckdb.RegisterScalarUDF(conn, f.Name, &goFunction{config: config, call: f.Call}); err != nil {
			return fmt.Errorf("register %s: %w", f.Name, err)
		}
	}
	return nil
}

func typeInfo(t expr.Type) (duckdb.TypeInfo, error) {
	kinds := map[expr.Type]duckdb.Type{expr.String: duckdb.TYPE_VARCHAR, expr.Int: duckdb.TYPE_BIGINT,
		expr.Float: duckdb.TYPE_DOUBLE, expr.DateTime: duckdb.TYPE_TIMESTAMP}
	return duckdb.NewTypeInfo(kinds[t])
}
