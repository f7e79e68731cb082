# SPDX-License-Identifier: GPL-2.0
"""The figures as a picture: bars on a logarithmic scale, one panel for each kernel."""

import math
import xml.etree.ElementTree as ET

from cases import SOFTWARE, Case

ROW, BAR, GAP, HEAD = 18, 13, 30, 90
LABEL, PLOT, MARGIN = 170, 360, 60
COLOURS = {"in-tree": "#8a94a6", "ours": "#1f77b4", "software": "#cfc6b3"}
FONT = "font-family:sans-serif;font-size:12px"
GROUPS = (("compress", True), ("compress", False), ("decompress", False))


def bars_of_group(results, kernel, op, verify):
    """(label, colour, figure) from top to bottom."""
    for mode in ("sync", "async_irq"):
        for iommu in (False, True):
            for driver in ("in-tree", "ours"):
                for one in results:
                    guest = one.guest
                    if (
                        (guest.kernel, guest.driver, guest.iommu) == (kernel, driver, iommu)
                        and one.case == Case(op, mode, verify)
                        and not one.error
                    ):
                        words = [driver, *(["async_irq"] if mode != "sync" else [])]
                        label = ", ".join(words + (["IOMMU"] if iommu else []))
                        yield label, COLOURS[driver], one.figure
    if verify:
        return
    for name in SOFTWARE:
        for one in results:
            if (
                one.guest.kernel == kernel
                and one.case == Case(op, software=name)
                and not one.error
            ):
                yield f"{name}, software", COLOURS["software"], one.figure


def text(parent, x, y, words, anchor="start", style=""):
    found = ET.SubElement(
        parent, "text", {"x": f"{x:g}", "y": f"{y:g}", "text-anchor": anchor, "style": FONT + style}
    )
    found.text = words
    return found


def line(parent, x1, y1, x2, y2, colour):
    ET.SubElement(
        parent,
        "line",
        {"x1": f"{x1:g}", "y1": f"{y1:g}", "x2": f"{x2:g}", "y2": f"{y2:g}", "stroke": colour},
    )


def panel(parent, left, kernel, groups, decades):
    """One kernel's bars; returns where they end."""
    low, high = decades
    scale = PLOT / (high - low)
    zero = left + LABEL
    height = sum(len(bars) * ROW + GAP for _, bars in groups)
    text(parent, left, HEAD - 30, f"Linux {kernel}", style=";font-weight:bold")
    for decade in range(low, high + 1):
        x = zero + (decade - low) * scale
        line(parent, x, HEAD - 8, x, HEAD + height, "#e3e3e3")
        text(parent, x, HEAD + height + 16, f"{10**decade:,}".replace(",", " "), "middle")
    text(
        parent,
        zero + PLOT / 2,
        HEAD + height + 36,
        "instructions for one operation (logarithmic)",
        "middle",
    )
    y = HEAD
    for title, bars in groups:
        text(parent, left, y + 12, title, style=";font-style:italic")
        y += GAP - 10
        for label, colour, figure in bars:
            width = max(1.0, (math.log10(max(figure, 1)) - low) * scale)
            text(parent, zero - 6, y + 11, label, "end")
            ET.SubElement(
                parent,
                "rect",
                {
                    "x": f"{zero:g}",
                    "y": f"{y:g}",
                    "width": f"{width:.1f}",
                    "height": f"{BAR:g}",
                    "fill": colour,
                },
            )
            text(parent, zero + width + 4, y + 11, str(figure))
            y += ROW
        y += 10
    return HEAD + height + 50


def draw(results):
    """The whole picture, as SVG text."""
    panels = []
    for kernel in dict.fromkeys(one.guest.kernel for one in results):
        groups = []
        for op, verify in GROUPS:
            title = op + (", verified by the device" if verify else "")
            if bars := list(bars_of_group(results, kernel, op, verify)):
                groups.append((title, bars))
        panels.append((kernel, groups))
    figures = [max(figure, 1) for _, groups in panels for _, bars in groups for _, _, figure in bars]
    low = math.floor(math.log10(min(figures, default=1)))
    high = math.ceil(math.log10(max(figures, default=10)))
    decades = (low, max(high, low + 1))
    width = MARGIN / 2 + max(1, len(panels)) * (LABEL + PLOT + MARGIN)
    root = ET.Element("svg", {"xmlns": "http://www.w3.org/2000/svg"})
    ET.SubElement(root, "rect", {"width": "100%", "height": "100%", "fill": "#ffffff"})
    text(
        root,
        MARGIN / 2,
        26,
        "Compression of 4 KB pages: instructions that the CPU executes",
        style=";font-size:16px;font-weight:bold",
    )
    text(root, MARGIN / 2, 44, "net of MOVDIR64B's emulation; a REP string instruction counts as one")
    bottom = HEAD
    for index, (kernel, groups) in enumerate(panels):
        left = MARGIN / 2 + index * (LABEL + PLOT + MARGIN)
        bottom = max(bottom, panel(root, left, kernel, groups, decades))
    root.set("width", f"{width:g}")
    root.set("height", f"{bottom:g}")
    root.set("viewBox", f"0 0 {width:g} {bottom:g}")
    ET.indent(root)
    return ET.tostring(root, encoding="unicode") + "\n"
