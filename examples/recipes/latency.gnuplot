# SPDX-License-Identifier: MIT
# Latency of every op over time, from `opline csv RUN > ops.csv`.
#   gnuplot -e "csv='ops.csv'; out='latency.png'" latency.gnuplot
set datafile separator ","
stats csv using (column("begin_ns")) name "t" nooutput
stats csv using (column("latency_ns") / 1e3) name "l" nooutput
set terminal pngcairo size 1000,500 font ",11"
set output out
set title sprintf("%d ops, median %.0f us, max %.0f us", l_records, l_median, l_max)
set xlabel "seconds since the first op"
set ylabel "latency (us)"
set logscale y
set grid
unset key
plot csv using ((column("begin_ns") - t_min) / 1e9):(column("latency_ns") / 1e3) with points pointtype 7 pointsize 0.3
