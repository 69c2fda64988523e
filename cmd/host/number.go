package main

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strconv"

	"github.com/alecthomas/kong"
	"github.com/dustin/go-humanize"
)

// Numbers on the command line are decimal, as people write them: strconv also takes Go's hexadecimal floats, digits with
// underscores, infinities and what is no number.
var (
	numberForm = regexp.MustCompile(`^-?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?$`)
	wholeForm  = regexp.MustCompile(`^-?[0-9]+$`)
	sizeForm   = regexp.MustCompile(`^([0-9]+(\.[0-9]+)?|\.[0-9]+)( *[A-Za-z]+)?$`)
	zeroForm   = regexp.MustCompile(`^[^1-9eE]*([eE].*)?$`)
)

// parseNumber reads a decimal number that is finite, and 0 only where 0 is written.
func parseNumber(text string) (float64, error) {
	if !numberForm.MatchString(text) {
		return 0, fmt.Errorf("have %q, want a decimal number such as 2, 0.5 or 1e-3", text)
	}
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || n == 0 && !zeroForm.MatchString(text) {
		return 0, fmt.Errorf("have %s, want a number of a common size", text)
	}
	return n, nil
}

// parseSize reads bytes such as 512MB, 4GB, 1.5GiB or a number of them; 0 only where 0 is written.
func parseSize(text string) (uint64, error) {
	if !sizeForm.MatchString(text) {
		return 0, errors.New("not a size")
	}
	n, err := humanize.ParseBytes(text)
	if err == nil && n == 0 && !zeroForm.MatchString(text) {
		err = errors.New("less than a byte")
	}
	return n, err
}

// strictNumbers make the flags of kong's numeric kinds read what parseNumber does, and whole numbers without an exponent.
func strictNumbers() []kong.Option {
	return []kong.Option{
		kong.KindMapper(reflect.Float64, numberFlag(func(text string, target reflect.Value) error {
			n, err := parseNumber(text)
			target.SetFloat(n)
			return err
		})),
		kong.KindMapper(reflect.Int, numberFlag(func(text string, target reflect.Value) error {
			n, err := strconv.ParseInt(text, 10, target.Type().Bits())
			if err != nil || !wholeForm.MatchString(text) {
				return fmt.Errorf("have %q, want a whole number such as 8", text)
			}
			target.SetInt(n)
			return nil
		})),
		kong.KindMapper(reflect.Uint64, numberFlag(func(text string, target reflect.Value) error {
			n, err := strconv.ParseUint(text, 10, 64)
			if err != nil {
				return fmt.Errorf("have %q, want a whole number from 0 to 2^64-1", text)
			}
			target.SetUint(n)
			return nil
		})),
	}
}

// numberFlag is a mapper by what reads the text of a flag.
func numberFlag(read func(text string, target reflect.Value) error) kong.Mapper {
	return kong.MapperFunc(func(ctx *kong.DecodeContext, target reflect.Value) error {
		t, err := ctx.Scan.PopValue("number")
		if err != nil {
			return err
		}
		return read(fmt.Sprint(t.Value), target)
	})
}
