package io.idempotence.spring;

import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.logging.Level;
import java.util.logging.Logger;
import java.util.stream.Stream;
import org.openqa.selenium.By;
import org.openqa.selenium.PageLoadStrategy;
import org.openqa.selenium.WebDriverException;
import org.openqa.selenium.WebElement;
import org.openqa.selenium.chrome.ChromeDriver;
import org.openqa.selenium.chrome.ChromeDriverService;
import org.openqa.selenium.chrome.ChromeOptions;
import org.openqa.selenium.support.ui.ExpectedConditions;
import org.openqa.selenium.support.ui.WebDriverWait;

/** The real browser of this machine, without a window. Tests are skipped where there is none. */
public final class Chromium implements AutoCloseable {
    private final ChromeDriver driver;

    private Chromium(ChromeDriver driver) {
        this.driver = driver;
    }

    /** Starts the browser, or skips the tests of the class. */
    public static Chromium start() {
        Optional<File> browser = installed("chromium", "chromium-browser", "google-chrome");
        Optional<File> service = installed("chromedriver");
        assumeTrue(
                browser.isPresent() && service.isPresent(),
                "no chromium and chromedriver on the PATH: the tests in a browser are skipped. Install chromium and chromium-driver");
        ChromeOptions options = new ChromeOptions();
        options.setBinary(browser.orElseThrow());
        options.addArguments("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--lang=en");
        options.addArguments("--window-size=1200,900");
        // A click must not wait for the page that it opens: the tests click twice.
        options.setPageLoadStrategy(PageLoadStrategy.NONE);
        // The driver says that it has no classes for this version of the browser. None are used.
        Logger.getLogger("org.openqa.selenium").setLevel(Level.SEVERE);
        return new Chromium(new ChromeDriver(
                new ChromeDriverService.Builder()
                        .usingDriverExecutable(service.orElseThrow())
                        .usingAnyFreePort()
                        .withSilent(true)
                        .build(),
                options));
    }

    private static Optional<File> installed(String... names) {
        return Stream.of(names)
                .flatMap(name -> Stream.of(System.getenv("PATH").split(File.pathSeparator))
                        .map(directory -> new File(directory, name)))
                .filter(File::canExecute)
                .findFirst();
    }

    public ChromeDriver driver() {
        return driver;
    }

    /** Opens a page, and waits until it has replaced the one before. */
    public void open(String url) {
        run("document.documentElement.setAttribute('data-left', '')");
        driver.get(url);
        waiting()
                .ignoring(WebDriverException.class)
                .until(any -> (Boolean) run("return document.readyState === 'complete'"
                        + " && !document.documentElement.hasAttribute('data-left')"));
    }

    private WebDriverWait waiting() {
        return new WebDriverWait(driver, Duration.ofSeconds(20), Duration.ofMillis(50));
    }

    /** Waits for an element that can be seen. */
    public WebElement see(String css) {
        return waiting()
                .ignoring(WebDriverException.class) // the page is being replaced
                .until(ExpectedConditions.visibilityOfElementLocated(By.cssSelector(css)));
    }

    /** Waits for a page without an element. */
    public void seeNo(String css) {
        waiting().ignoring(WebDriverException.class).until(any -> (Boolean)
                run("return document.readyState === 'complete' && !document.querySelector(arguments[0])", css));
    }

    /** Waits for a page with this first heading. */
    public void seeHeading(String text) {
        waiting()
                .withMessage(() -> "expected the heading '" + text + "', found: " + text())
                .ignoring(WebDriverException.class) // the page is being replaced
                .until(ExpectedConditions.textToBe(By.cssSelector("h1"), text));
    }

    /** Waits for a page with this text in its title or body. */
    public void seeText(String text) {
        waiting()
                .withMessage(() -> "expected the text '" + text + "', found: " + text())
                .ignoring(WebDriverException.class)
                .until(any -> run("return document.title + document.body.innerText")
                        .toString()
                        .contains(text));
    }

    public String text() {
        return driver.findElement(By.tagName("body")).getText();
    }

    public Object run(String script, Object... arguments) {
        return driver.executeScript(script, arguments);
    }

    /** Sets what the reader prefers: {@code dark} or {@code light}. */
    public void prefer(String scheme) {
        driver.executeCdpCommand(
                "Emulation.setEmulatedMedia",
                Map.of("features", List.of(Map.of("name", "prefers-color-scheme", "value", scheme))));
    }

    /** Keeps a picture of the whole page in the directory of the system property {@code idempotence.shots}, if it is set. */
    public void picture(String name) throws IOException {
        String directory = System.getProperty("idempotence.shots");
        if (directory != null) {
            Files.createDirectories(Path.of(directory));
            Object whole = driver.executeCdpCommand("Page.captureScreenshot", Map.of("captureBeyondViewport", true))
                    .get("data");
            Files.write(Path.of(directory, name + ".png"), Base64.getDecoder().decode(whole.toString()));
        }
    }

    @Override
    public void close() {
        driver.quit();
    }
}
