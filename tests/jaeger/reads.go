// SPDX-License-Identifier: MIT

// Reads files as Jaeger does, with its own code. Its module's name begins as Jaeger's does, for what that has in
// folders named internal may be used in no other.
//
//	usage: reads otlp|otlp-json|jaeger FILE
//	       reads sent ADDRESS
//
// otlp: an ExportTraceServiceRequest, from which it makes the traces that its query service would send to its page.
// otlp-json: the same as JSON, one in each line. jaeger: what its page opens from a file. sent: what comes to the
// collector's OTLP receiver, over HTTP at http://ADDRESS/v1/traces, until standard input ends. All print the traces as
// JSON.
package main

import (
	"bytes"
	"encoding/json"
	"log"
	"os"

	"github.com/jaegertracing/jaeger-idl/model/v1"
	"github.com/jaegertracing/jaeger/internal/storage/v2/v1adapter"
	"github.com/jaegertracing/jaeger/internal/uimodel"
	uijson "github.com/jaegertracing/jaeger/internal/uimodel/converter/v1/json"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
)

func ofOTLP(data []byte) []*uimodel.Trace {
	request := ptraceotlp.NewExportRequest()
	if err := request.UnmarshalProto(data); err != nil {
		log.Fatal(err)
	}
	return ofTraces(request.Traces())
}

func ofOTLPJSON(data []byte) []*uimodel.Trace {
	all := ptrace.NewTraces()
	for _, line := range bytes.Split(bytes.TrimSuffix(data, []byte("\n")), []byte("\n")) {
		request := ptraceotlp.NewExportRequest()
		if err := request.UnmarshalJSON(line); err != nil {
			log.Fatal(err)
		}
		request.Traces().ResourceSpans().MoveAndAppendTo(all.ResourceSpans())
	}
	return ofTraces(all)
}

func ofTraces(read ptrace.Traces) []*uimodel.Trace {
	byID := map[model.TraceID]*model.Trace{}
	for _, batch := range v1adapter.ProtoFromTraces(read) {
		for _, span := range batch.Spans {
			span.Process = batch.Process
			if byID[span.TraceID] == nil {
				byID[span.TraceID] = &model.Trace{}
			}
			byID[span.TraceID].Spans = append(byID[span.TraceID].Spans, span)
		}
	}
	traces := []*uimodel.Trace{}
	for _, trace := range byID {
		traces = append(traces, uijson.FromDomain(trace))
	}
	return traces
}

func ofJaeger(data []byte) []*uimodel.Trace {
	var file struct {
		Data   []*uimodel.Trace `json:"data"`
		Total  int              `json:"total"`
		Limit  int              `json:"limit"`
		Offset int              `json:"offset"`
		Errors []any            `json:"errors"`
	}
	reader := json.NewDecoder(bytes.NewReader(data))
	reader.DisallowUnknownFields()
	reader.UseNumber()
	if err := reader.Decode(&file); err != nil {
		log.Fatal(err)
	}
	return file.Data
}

func main() {
	var traces []*uimodel.Trace
	if os.Args[1] == "sent" {
		traces = ofTraces(received(os.Args[2]))
	} else {
		data, err := os.ReadFile(os.Args[2])
		if err != nil {
			log.Fatal(err)
		}
		read := map[string]func([]byte) []*uimodel.Trace{"otlp": ofOTLP, "otlp-json": ofOTLPJSON, "jaeger": ofJaeger}
		traces = read[os.Args[1]](data)
	}
	if err := json.NewEncoder(os.Stdout).Encode(traces); err != nil {
		log.Fatal(err)
	}
}
