"use strict";
// Draws the figures of the page from the JSON in it, in the colors of the medium: light or
// dark on a screen, light on paper.
(function () {
  const data = JSON.parse(document.getElementById("data").textContent);
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const print = matchMedia("print");
  const narrow = 520; // pixels, below which labels are short of room
  const paper = 660; // pixels of width that all paper has

  // Ten hues that are told apart with any color vision, by Okabe and Ito and Tol, adjusted
  // to a contrast of at least 3 to 1 with the ground.
  const light = {
    ink: "#1b2026", soft: "#57606a", line: "#d8dde3", ground: "#ffffff", bound: "#1b2026", miss: "#c3c9d0", chosen: "#a3123f",
    places: ["#1f6fb4", "#d0661b", "#138a6b", "#b0468f", "#8a7400", "#3a9fc4", "#c23b3b", "#6a51a3", "#5f6b2d", "#7a5230"],
    rising: ["#8bbbe0", "#4f94cc", "#2470b3", "#174f86", "#0c2f55"],
  };
  const night = {
    ink: "#e4e8ed", soft: "#9aa4b0", line: "#333a43", ground: "#14171b", bound: "#e4e8ed", miss: "#4b5460", chosen: "#ff7a9c",
    places: ["#5aa9e6", "#f0944d", "#3fc19c", "#dd84c0", "#cdb53f", "#86d3ee", "#ef7d7d", "#a993e0", "#a9b665", "#c79a72"],
    rising: ["#2f5f8f", "#3f82bf", "#5fa6e0", "#9ccbf2", "#dbeeff"],
  };
  const symbols = ["circle", "rect", "triangle", "diamond", "roundRect", "pin"];

  // By its name: text is measured on a canvas, which does not know "inherit".
  const family = getComputedStyle(document.body).fontFamily;

  let palette = light;

  function colorOf(c) {
    if (c.tone === "rising") return palette.rising[c.place % palette.rising.length];
    if (c.tone) return palette[c.tone];
    return palette.places[c.place % palette.places.length];
  }
  function symbolOf(c) {
    return c.tone === "bound" || c.tone === "chosen" ? "circle" : symbols[c.place % symbols.length];
  }

  function trimmed(v, digits) {
    return String(Number(v.toPrecision(digits)));
  }
  function scaled(v, digits, units) {
    if (v === 0) return "0";
    const [of, name] = units.find(([of]) => Math.abs(v) >= of * 0.9999) || units[units.length - 1];
    return trimmed(v / of, digits) + " " + name;
  }
  // text writes a value in its unit, short for axes.
  function text(v, unit, short) {
    if (v === null || v === undefined || Number.isNaN(v)) return "–";
    const digits = short ? 3 : 4;
    switch (unit) {
      case "share":
        return (short ? trimmed(100 * v, 4) : (100 * v).toFixed(2)) + " %";
      case "seconds":
        return scaled(v, digits, [[1, "s"], [1e-3, "ms"], [1e-6, "µs"], [1e-9, "ns"]]);
      case "bytes":
        return scaled(v, digits, [[2 ** 40, "TiB"], [2 ** 30, "GiB"], [2 ** 20, "MiB"], [2 ** 10, "KiB"], [1, "B"]]);
      case "percentile":
        return "p" + trimmed(100 * (1 - 1 / v), 6);
      case "count":
        if (short && Math.abs(v) >= 10000) return scaled(v, 3, [[1e9, "G"], [1e6, "M"], [1e3, "k"]]).replace(" ", "");
        return (Math.round(v * 10) / 10).toLocaleString("en-US");
    }
    return trimmed(v, short ? 4 : 6);
  }

  // marker is how a point looks: what is chosen is a ring around what lies there.
  function marker(c, size) {
    const color = colorOf(c);
    if (c.tone !== "chosen") return { symbolSize: size, itemStyle: { color } };
    return { symbolSize: 16, itemStyle: { color: "transparent", borderColor: color, borderWidth: 3 } };
  }

  const positive = (v, log) => (log && !(v > 0) ? null : v);

  function axis(a, extra, wide) {
    const at = {
      type: a.log ? "log" : "value",
      name: a.log && a.name ? a.name + " (logarithmic)" : a.name,
      nameLocation: "middle",
      nameTextStyle: { color: palette.soft, fontSize: 12 },
      axisLabel: { color: palette.soft, fontSize: 12, hideOverlap: true, formatter: (v) => text(v, a.unit, true) },
      axisLine: { show: true, lineStyle: { color: palette.line } },
      axisTick: { show: false },
      splitLine: { lineStyle: { color: palette.line, opacity: 0.7 } },
      splitNumber: wide ? 5 : 3,
      axisPointer: { label: { formatter: (p) => text(p.value, a.unit) } },
    };
    if (extra.ticks) {
      at.axisLabel.customValues = extra.ticks;
      at.axisTick.customValues = extra.ticks;
    }
    if (a.least !== null) at.min = a.least;
    if (a.most !== null) at.max = a.most;
    if (a.unit === "count" && !a.log) at.minInterval = 1;
    if (a.unit === "share" && a.most === 1) at.interval = wide ? 0.2 : 0.25;
    return Object.assign(at, extra);
  }

  // bounds are the powers of ten around what is shown, as a logarithmic axis begins with 1
  // otherwise.
  function logBounds(a, values, wide) {
    if (!a.log || a.least !== null) return {};
    const shown = values.filter((v) => v > 0);
    if (!shown.length) return {};
    const round = (v, to) => {
      const power = 10 ** Math.floor(Math.log10(v) + 1e-9);
      const steps = [1, 2, 5, 10].map((s) => s * power);
      return to < 0 ? steps.filter((s) => s <= v * 1.0001).pop() : steps.find((s) => s >= v * 0.9999);
    };
    let least = round(Math.min(...shown), -1);
    let most = round(Math.max(...shown), 1);
    if (least === most) [least, most] = [least / 2, most * 2];
    const at = ticks(least, most, wide);
    return { min: least, max: most, ticks: a.unit === "percentile" ? [2, ...at.filter((v) => v >= 10)] : at };
  }

  // ticks are 1, 2 and 5 of each power of ten where there are few powers, else the powers
  // that there is room for.
  function ticks(least, most, wide) {
    const all = [];
    if (most / least > 200) {
      const from = Math.ceil(Math.log10(least) - 1e-9);
      const to = Math.floor(Math.log10(most) + 1e-9);
      const by = Math.ceil((to - from) / (wide ? 9 : 4));
      for (let power = from; power <= to; power += by) all.push(10 ** power);
      return all;
    }
    for (let power = 10 ** Math.floor(Math.log10(least) + 1e-9); power <= most; power *= 10) {
      all.push(...[1, 2, 5].map((s) => s * power).filter((v) => v >= least * 0.999 && v <= most * 1.001));
    }
    return all;
  }

  function marks(f, along) {
    if (!f.marks.length) return undefined;
    return {
      silent: true, symbol: "none", animation: false,
      lineStyle: { color: palette.ink, type: "dashed", width: 1 },
      label: { color: palette.ink, fontSize: 11, formatter: (p) => p.name, position: along === "xAxis" ? "start" : "insideEndTop" },
      data: f.marks.map((m) => ({ name: m.name, [along]: m.at })),
    };
  }

  const base = (f, wide) => ({
    animation: false,
    textStyle: { color: palette.ink, fontFamily: family },
    tooltip: {
      trigger: "axis", confine: true, transitionDuration: 0,
      backgroundColor: palette.ground, borderColor: palette.line,
      textStyle: { color: palette.ink, fontSize: 12 },
      valueFormatter: (v) => text(Array.isArray(v) ? v[0] : v, f.y.unit),
    },
    grid: { left: 8, right: wide ? 28 : 20, top: f.marks.length ? 24 : 10, bottom: 26, containLabel: true },
  });

  // labels are how wide the names of categories may be, and how many lines the longest takes.
  function labels(f, width) {
    const longest = Math.max(...f.categories.map((c) => c.length)) * 6.8 + 4; // about, in pixels
    const room = Math.min(260, width * 0.36, longest);
    return { room, lines: Math.ceil(longest / room) };
  }

  const lineHeight = 13;

  function categoryAxis(f, width) {
    return {
      type: "category", inverse: true, data: f.categories,
      axisLabel: { color: palette.ink, fontSize: 12, interval: 0, width: labels(f, width).room, overflow: "break", lineHeight },
      axisLine: { lineStyle: { color: palette.line } }, axisTick: { show: false },
    };
  }

  function bars(f, shown, width, wide) {
    const stacked = f.kind === "stack";
    const values = f.series.flatMap((s) => s.values || []);
    const x = axis(f.y, Object.assign({ nameGap: 28 }, logBounds(f.y, values, wide)), wide);
    if (f.y.unit === "bytes" && !f.y.log) { // as round as bytes are
      const most = Math.max(1, ...values);
      x.interval = 2 ** Math.ceil(Math.log2(most / (wide ? 5 : 3)));
      x.max = Math.ceil(most / x.interval) * x.interval;
    }
    const mark = Math.max(...f.marks.map((m) => m.at));
    if (!f.y.log && mark > Math.max(...values)) { // an axis ends with its data otherwise
      x.max = mark * 1.05;
      x.axisLabel.showMaxLabel = false;
    }
    const option = base(f, wide);
    if (!stacked) option.grid.right = 56; // of the longest bar's figure
    return Object.assign(option, {
      xAxis: x,
      yAxis: categoryAxis(f, width),
      series: f.series.filter(shown).map((s, i) => ({
        type: "bar", name: s.name, stack: stacked ? "all" : undefined,
        barMaxWidth: stacked || f.series.length === 1 ? 18 : 12, barCategoryGap: "28%", barGap: "10%",
        itemStyle: { color: f.colors ? undefined : colorOf(s.color) },
        label: stacked ? undefined : { show: true, position: "right", color: palette.soft, fontSize: 11, formatter: (p) => text(p.value, f.y.unit, true) },
        emphasis: { disabled: true },
        markLine: i === 0 ? marks(f, "xAxis") : undefined,
        data: s.values.map((v, c) => (f.colors ? { value: positive(v, f.y.log), itemStyle: { color: colorOf(f.colors[c]) } } : positive(v, f.y.log))),
      })),
    });
  }

  function dots(f, shown, width, wide) {
    const values = f.series.flatMap((s) => s.values || []);
    const visible = f.series.filter(shown);
    const ranges = f.categories.map((_, c) => visible.map((s) => s.values[c]).filter((v) => v > 0 || (v === 0 && !f.y.log)));
    const option = Object.assign(base(f, wide), {
      xAxis: axis(f.y, Object.assign({ nameGap: 28 }, logBounds(f.y, values, wide)), wide),
      yAxis: Object.assign(categoryAxis(f, width), { axisPointer: { type: "shadow" } }),
      series: ranges.filter((r) => r.length > 1).map((r, n) => ({
        type: "line", silent: true, symbol: "none", z: 1, tooltip: { show: false },
        lineStyle: { color: palette.line, width: 3 },
        data: [[Math.min(...r), ranges.indexOf(r)], [Math.max(...r), ranges.indexOf(r)]],
      })),
    });
    option.tooltip.trigger = "item";
    option.tooltip.formatter = undefined;
    visible.forEach((s, i) => option.series.push({
      type: "scatter", name: s.name, symbol: symbolOf(s.color), symbolSize: 10, z: 3,
      itemStyle: { color: colorOf(s.color), borderColor: palette.ground, borderWidth: 1 },
      emphasis: { disabled: true }, encode: { x: 0, y: 1, tooltip: [0] },
      markLine: i === 0 ? marks(f, "xAxis") : undefined,
      data: s.values.map((v, c) => ({ name: f.categories[c], value: [positive(v, f.y.log), c] })).filter((p) => p.value[0] !== null),
    }));
    return option;
  }

  function lines(f, shown, width, wide) {
    const xs = f.series.flatMap((s) => (s.points || []).map((p) => p[0]));
    const ys = f.series.flatMap((s) => (s.points || []).map((p) => p[1]));
    const x = axis(f.x, Object.assign({ nameGap: 28 }, logBounds(f.x, xs, wide)), wide);
    if (!f.x.log && f.x.least === null) x.max = "dataMax";
    x.splitLine = { show: f.x.log, lineStyle: { color: palette.line, opacity: 0.5 } };
    const y = axis(f.y, logBounds(f.y, ys, true), true);
    y.nameLocation = "end";
    y.nameTextStyle = { color: palette.soft, fontSize: 12, align: "left", padding: [0, 0, 0, -30] };
    const option = Object.assign(base(f, wide), { xAxis: x, yAxis: y });
    option.grid.top = 30;
    option.tooltip.valueFormatter = (v) => text(Array.isArray(v) ? v[1] : v, f.y.unit);
    option.series = f.series.filter(shown).map((s, i) => {
      const points = s.points || [];
      const few = points.length <= 16 && !s.step;
      const bound = s.color.tone === "bound";
      return {
        type: s.loose ? "scatter" : "line", name: s.name, step: s.step ? "end" : false,
        ...marker(s.color, s.loose ? 9 : few ? 7 : 4), symbol: symbolOf(s.color), showSymbol: few, showAllSymbol: true,
        lineStyle: { color: colorOf(s.color), width: bound ? 2.5 : 2, type: bound ? [6, 4] : "solid" },
        emphasis: { disabled: true }, z: s.loose ? 6 : bound ? 5 : 3,
        markLine: i === 0 ? marks(f, "yAxis") : undefined,
        data: points.map((p) => [positive(p[0], f.x.log), positive(p[1], f.y.log)]),
      };
    });
    return option;
  }

  function height(f, width) {
    if (f.kind === "lines") return Math.max(260, Math.min(380, width * 0.5));
    const each = Math.max(
      (f.kind === "bars" ? Math.max(28, f.series.length * 15 + 10) : 28) * (width < narrow ? 1.25 : 1),
      labels(f, width).lines * lineHeight + 8,
    );
    return Math.max(120, Math.round(f.categories.length * each) + (f.marks.length ? 82 : 68));
  }

  const namespace = "http://www.w3.org/2000/svg";
  // swatch shows the color and the symbol of a series.
  function swatch(f, s) {
    const svg = document.createElementNS(namespace, "svg");
    svg.setAttribute("width", "14");
    svg.setAttribute("height", "12");
    svg.setAttribute("aria-hidden", "true");
    const add = (name, attributes) => {
      const e = document.createElementNS(namespace, name);
      for (const [k, v] of Object.entries(attributes)) e.setAttribute(k, v);
      svg.append(e);
    };
    const fill = colorOf(s.color);
    if (f.kind === "lines" && !s.loose) {
      add("line", { x1: 0, y1: 6, x2: 14, y2: 6, stroke: fill, "stroke-width": 2, "stroke-dasharray": s.color.tone === "bound" ? "4 2" : "none" });
    }
    const symbol = f.kind === "bars" || f.kind === "stack" ? "rect" : symbolOf(s.color);
    if (s.color.tone === "chosen") add("circle", { cx: 7, cy: 6, r: 4, fill: "none", stroke: fill, "stroke-width": 2.5 });
    else if (symbol === "circle") add("circle", { cx: 7, cy: 6, r: 4, fill });
    else if (symbol === "triangle") add("path", { d: "M7 1.5 L11.5 10 L2.5 10 Z", fill });
    else if (symbol === "diamond") add("path", { d: "M7 1 L12 6 L7 11 L2 6 Z", fill });
    else add("rect", { x: 3, y: 2, width: 8, height: 8, rx: symbol === "roundRect" ? 2.5 : 0, fill });
    return svg;
  }

  const charts = [...document.querySelectorAll(".chart")].map((element) => {
    const f = data[Number(element.dataset.figure)];
    const legend = element.previousElementSibling;
    const hidden = new Set();
    const chart = { element };
    let drawn = null;

    if (f.series.length > 1) {
      for (const s of f.series) {
        const button = document.createElement("button");
        button.type = "button";
        button.setAttribute("aria-pressed", "true");
        button.title = "Show or hide";
        button.append(document.createElement("span"), s.name);
        button.addEventListener("click", () => {
          if (!hidden.delete(s)) hidden.add(s);
          button.setAttribute("aria-pressed", String(!hidden.has(s)));
          chart.draw();
        });
        legend.append(button);
      }
    }

    chart.draw = function (width) {
      width = width || element.clientWidth;
      if (!width) return;
      const wide = width >= narrow;
      element.style.height = height(f, width) + "px";
      if (!drawn) drawn = echarts.init(element, null, { renderer: "svg", width, height: height(f, width) });
      else drawn.resize({ width, height: height(f, width) });
      const shown = (s) => !hidden.has(s);
      const option = f.kind === "lines" ? lines(f, shown, width, wide) : f.kind === "dots" ? dots(f, shown, width, wide) : bars(f, shown, width, wide);
      drawn.setOption(option, { notMerge: true });
      legend.querySelectorAll("button").forEach((b, i) => b.firstChild.replaceWith(swatch(f, f.series[i])));
    };
    return chart;
  });

  function drawAll(onPaper) {
    palette = dark.matches && !onPaper ? night : light;
    for (const c of charts) c.draw(onPaper ? paper : 0);
  }
  const medium = () => drawAll(print.matches);

  dark.addEventListener("change", medium);
  print.addEventListener("change", medium);
  addEventListener("beforeprint", () => drawAll(true));
  addEventListener("afterprint", () => drawAll(false));
  let width = innerWidth;
  addEventListener("resize", () => {
    if (innerWidth === width) return; // a phone's bars come and go
    width = innerWidth;
    medium();
  });
  medium();
})();
