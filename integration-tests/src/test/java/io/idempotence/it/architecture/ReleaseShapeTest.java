package io.idempotence.it.architecture;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assumptions.assumeThat;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.IntStream;
import javax.xml.parsers.DocumentBuilderFactory;
import javax.xml.xpath.XPath;
import javax.xml.xpath.XPathConstants;
import javax.xml.xpath.XPathFactory;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.w3c.dom.Document;
import org.w3c.dom.NodeList;

/** The modules of a release: the folders of the root whose names begin with {@code idempotence-}. */
class ReleaseShapeTest {
    private static final Path ROOT = Path.of("..");

    private final XPath xpath = XPathFactory.newInstance().newXPath();

    /** The BOM has no parent, so its version is written in it. */
    @Test
    void bomHasTheVersionOfTheBuildAndListsEachModule() throws Exception {
        Document bom = pom("idempotence-bom");
        assertThat(xpath.evaluate("/project/version", bom)).isEqualTo(xpath.evaluate("/project/version", pom(".")));
        NodeList managed = (NodeList) xpath.evaluate(
                "/project/dependencyManagement/dependencies/dependency/artifactId", bom, XPathConstants.NODESET);
        assertThat(texts(managed)).containsExactlyInAnyOrderElementsOf(modules());
    }

    /** A POM with a parent would make users resolve it, and all that it imports. */
    @ParameterizedTest
    @MethodSource("modules")
    void pomsAreFlat(String module) throws Exception {
        NodeList plugins = (NodeList)
                xpath.evaluate("/project/build/plugins/plugin/artifactId", pom(module), XPathConstants.NODESET);
        assertThat(texts(plugins)).contains("flatten-maven-plugin");
    }

    @Test
    void runnableJarOfTheOperatorsToolIsPartOfARelease() throws Exception {
        String attached = "/project/build/plugins/plugin[artifactId='build-helper-maven-plugin']//artifact";
        Document pom = pom("idempotence-cli");
        assertThat(xpath.evaluate(attached + "/file", pom)).isEqualTo("${project.build.directory}/idempotence.jar");
        assertThat(xpath.evaluate(attached + "/classifier", pom)).isEqualTo("runnable");
    }

    @ParameterizedTest
    @MethodSource("modules")
    void jarsCarryTheLicence(String module) {
        Path classes = ROOT.resolve(module).resolve("target/classes");
        assumeThat(classes).as("what this build made of " + module).exists();
        assertThat(classes.resolve("META-INF/LICENSE")).hasSameTextualContentAs(ROOT.resolve("LICENSE"));
    }

    private static List<String> modules() throws Exception {
        try (var folders = Files.list(ROOT)) {
            return folders.map(folder -> folder.getFileName().toString())
                    .filter(name -> name.startsWith("idempotence-") && !name.equals("idempotence-bom"))
                    .filter(name -> Files.exists(ROOT.resolve(name).resolve("pom.xml")))
                    .toList();
        }
    }

    private static List<String> texts(NodeList nodes) {
        return IntStream.range(0, nodes.getLength())
                .mapToObj(i -> nodes.item(i).getTextContent())
                .toList();
    }

    private static Document pom(String module) throws Exception {
        return DocumentBuilderFactory.newInstance()
                .newDocumentBuilder()
                .parse(ROOT.resolve(module).resolve("pom.xml").toFile());
    }
}
