package io.idempotence.benchmarks;

import java.awt.Color;
import java.awt.Dimension;
import java.awt.Font;
import java.awt.Rectangle;
import java.io.IOException;
import java.io.Writer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.text.NumberFormat;
import java.util.List;
import java.util.Locale;
import javax.xml.parsers.DocumentBuilderFactory;
import javax.xml.parsers.ParserConfigurationException;
import org.apache.batik.svggen.SVGGraphics2D;
import org.jfree.chart.ChartFactory;
import org.jfree.chart.JFreeChart;
import org.jfree.chart.axis.Axis;
import org.jfree.chart.axis.CategoryAxis;
import org.jfree.chart.axis.CategoryLabelPositions;
import org.jfree.chart.block.BlockBorder;
import org.jfree.chart.labels.StandardCategoryItemLabelGenerator;
import org.jfree.chart.plot.CategoryPlot;
import org.jfree.chart.renderer.category.BarRenderer;
import org.jfree.chart.renderer.category.StandardBarPainter;
import org.jfree.chart.text.TextUtils;
import org.jfree.data.category.DefaultCategoryDataset;
import org.jfree.data.general.DatasetUtils;
import org.w3c.dom.Document;

/** Bars in groups, as an SVG. They stand on a ground of their own, so that they are legible on a light and on a dark page. */
final class Plot {
    private static final int WIDTH = 900;
    private static final int HEIGHT = 400;
    private static final Font TEXT = new Font(Font.SANS_SERIF, Font.PLAIN, 13);
    private static final Color INK = new Color(0x24292F);
    private static final Color GRID = new Color(0xD0D7DE);

    /** Okabe and Ito's, which colour-blind readers can tell apart. */
    private static final List<Color> COLOURS = List.of(
            new Color(0x0072B2),
            new Color(0xE69F00),
            new Color(0x009E73),
            new Color(0xCC79A7),
            new Color(0x56B4E9),
            new Color(0xD55E00),
            new Color(0x999999),
            new Color(0xF0E442));

    private final String name;
    private final String title;
    private final String axis;
    private final List<String> groups;
    private final String figure;
    private final DefaultCategoryDataset bars = new DefaultCategoryDataset();

    /**
     * Without bars yet.
     *
     * @param name of the file
     * @param axis what the groups are
     * @param groups from left to right
     * @param figure what the bars show, with the unit
     */
    Plot(String name, String title, String axis, List<String> groups, String figure) {
        this.name = name;
        this.title = title;
        this.axis = axis;
        this.groups = groups;
        this.figure = figure;
    }

    /** Adds one bar to each group. */
    Plot bars(String series, double... values) {
        for (int i = 0; i < values.length; i++) {
            bars.addValue(values[i], series, groups.get(i));
        }
        return this;
    }

    String fileName() {
        return name + ".svg";
    }

    /** In words, for a reader who does not see it. */
    String description() {
        return title + ": " + figure;
    }

    void write(Path folder) throws IOException {
        SVGGraphics2D svg = new SVGGraphics2D(document());
        // Otherwise a rotated text becomes outlines of its letters.
        TextUtils.setUseDrawRotatedStringWorkaround(false);
        svg.setSVGCanvasSize(new Dimension(WIDTH, HEIGHT));
        chart().draw(svg, new Rectangle(WIDTH, HEIGHT));
        try (Writer out = Files.newBufferedWriter(folder.resolve(fileName()))) {
            svg.stream(out, true);
        }
    }

    private static Document document() {
        try {
            return DocumentBuilderFactory.newInstance()
                    .newDocumentBuilder()
                    .getDOMImplementation()
                    .createDocument(SVGGraphics2D.SVG_NAMESPACE_URI, SVGGraphics2D.SVG_SVG_TAG, null);
        } catch (ParserConfigurationException e) {
            throw new IllegalStateException("the JDK has no XML documents", e);
        }
    }

    private JFreeChart chart() {
        JFreeChart chart = ChartFactory.createBarChart(title, axis, figure, bars);
        chart.setBackgroundPaint(Color.WHITE);
        chart.getTitle().setFont(TEXT.deriveFont(Font.BOLD, 15f));
        chart.getTitle().setPaint(INK);
        chart.getLegend().setItemFont(TEXT);
        chart.getLegend().setItemPaint(INK);
        chart.getLegend().setFrame(BlockBorder.NONE);
        chart.getLegend().setVisible(bars.getRowCount() > 1);

        CategoryPlot plot = chart.getCategoryPlot();
        plot.setBackgroundPaint(Color.WHITE);
        plot.setOutlineVisible(false);
        plot.setRangeGridlinePaint(GRID);
        plot.getRangeAxis().setUpperMargin(0.1);
        CategoryAxis below = plot.getDomainAxis();
        below.setCategoryLabelPositions(CategoryLabelPositions.STANDARD);
        below.setMaximumCategoryLabelLines(3);
        below.setCategoryMargin(0.12);
        for (Axis each : List.of(below, plot.getRangeAxis())) {
            each.setLabelFont(TEXT);
            each.setLabelPaint(INK);
            each.setTickLabelFont(TEXT);
            each.setTickLabelPaint(INK);
        }

        BarRenderer renderer = (BarRenderer) plot.getRenderer();
        renderer.setBarPainter(new StandardBarPainter());
        renderer.setShadowVisible(false);
        renderer.setItemMargin(0.05);
        renderer.setMaximumBarWidth(0.1);
        renderer.setDefaultItemLabelGenerator(new StandardCategoryItemLabelGenerator("{2}", numbers()));
        renderer.setDefaultItemLabelFont(TEXT.deriveFont(10.5f));
        renderer.setDefaultItemLabelPaint(INK);
        renderer.setDefaultItemLabelsVisible(true);
        for (int i = 0; i < bars.getRowCount(); i++) {
            renderer.setSeriesPaint(i, COLOURS.get(i % COLOURS.size()));
        }
        return chart;
    }

    /** Three digits of the highest bar. */
    private NumberFormat numbers() {
        double highest = DatasetUtils.findMaximumRangeValue(bars).doubleValue();
        int digits = highest >= 100 ? 0 : highest >= 10 ? 1 : 2;
        NumberFormat format = NumberFormat.getInstance(Locale.ROOT);
        format.setMinimumFractionDigits(digits);
        format.setMaximumFractionDigits(digits);
        return format;
    }
}
