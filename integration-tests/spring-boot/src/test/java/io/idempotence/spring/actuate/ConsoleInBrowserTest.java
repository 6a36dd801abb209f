package io.idempotence.spring.actuate;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import io.idempotence.IdempotenceId;
import io.idempotence.server.ExecutionRefusedException;
import io.idempotence.server.Idempotence;
import io.idempotence.server.IdempotenceEvent;
import io.idempotence.server.storage.StorageKey;
import io.idempotence.spring.Chromium;
import java.io.IOException;
import java.io.InputStream;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.openqa.selenium.By;
import org.openqa.selenium.Keys;
import org.openqa.selenium.WebElement;
import org.openqa.selenium.interactions.Actions;
import org.springframework.boot.builder.SpringApplicationBuilder;
import org.springframework.context.ConfigurableApplicationContext;

/** The console in the hands of an operator with a real browser. */
@Tag("all")
class ConsoleInBrowserTest {
    private static final String AXE = "axe.min.js";

    private static Chromium browser;
    private static ConfigurableApplicationContext application;
    private static String site;
    private static ConsoleApplication.Records records;
    private static Idempotence idempotence;

    @BeforeAll
    static void start() {
        browser = Chromium.start();
        application = started("idempotence.console.writes=true");
        site = site(application);
        records = application.getBean(ConsoleApplication.Records.class);
        idempotence = application.getBean(Idempotence.class);
        logIn("olga");
    }

    private static ConfigurableApplicationContext started(String... properties) {
        return new SpringApplicationBuilder(ConsoleApplication.class)
                .properties(
                        "server.port=0",
                        "server.address=localhost",
                        "spring.main.banner-mode=off",
                        "spring.application.name=payments",
                        "idempotence.console.enabled=true",
                        "idempotence.console.questions[POST /payments]=Does the bank know this payment?",
                        "idempotence.console.question=Was the payment booked at the bank?")
                .properties(properties)
                .run();
    }

    private static String site(ConfigurableApplicationContext application) {
        return "http://localhost:" + application.getEnvironment().getProperty("local.server.port");
    }

    private static void logIn(String user) {
        browser.driver().manage().deleteAllCookies();
        browser.open(site + "/login");
        browser.see("#username").sendKeys(user);
        browser.see("#password").sendKeys("secret", Keys.ENTER);
        browser.seeNo("#username");
        browser.open(site + "/idempotence");
    }

    @AfterAll
    static void stop() {
        if (application != null) {
            application.close();
        }
        if (browser != null) {
            browser.close();
        }
    }

    @BeforeEach
    void aDayAtWork() throws Exception {
        browser.prefer("light");
        records.clear();
        records.claim("payment-1", Duration.ofHours(24));
        records.claim("payment-2", Duration.ofMinutes(56));
        records.pass(Duration.ofMinutes(12));
        ConsoleApplication.Records.unknown(idempotence, "payment-3");
        records.pass(Duration.ofMinutes(3));
        records.claim("payment-4", Duration.ofHours(24));
        for (int i = 0; i < 8; i++) {
            idempotence.execute(new IdempotenceId("done-" + i), () -> "booked");
        }
    }

    private static void open(String query) {
        browser.open(site + "/idempotence" + query);
    }

    @Test
    void theOverviewShowsWhatNeedsADecisionMostUrgentFirst() throws Exception {
        open("");

        browser.seeHeading("3 records need a decision");
        assertThat(browser.see(".tile.completed").getText()).contains("8");
        assertThat(browser.see(".tile.in-progress").getText()).contains("1");
        List<WebElement> rows = browser.driver().findElements(By.cssSelector("tbody tr"));
        assertThat(rows).hasSize(3);
        assertThat(rows.get(0).getText()).contains("abandoned", "soon");
        assertThat(browser.text()).contains("payments").doesNotContain("booked");
    }

    @Test
    void aRecordIsFoundByItsId() {
        open("");
        browser.see("input[name=id]").sendKeys("payment-1", Keys.ENTER);

        browser.seeHeading("1 record of this ID");
        assertThat(browser.text()).contains("abandoned", "a request");
        browser.see("input[name=id]").clear();
        browser.see("input[name=id]").sendKeys("never-used", Keys.ENTER);
        browser.seeHeading("No record of this ID");
    }

    @Test
    void recordsAreListedByState() {
        open("");
        browser.see(".tile.completed").click();

        browser.seeHeading("Records: completed");
        assertThat(browser.driver().findElements(By.cssSelector("tbody tr"))).hasSize(8);
    }

    @Test
    void aRecordIsResolvedWithTheKeyboardAlone() throws Exception {
        open("");
        browser.seeHeading("3 records need a decision");
        tabTo("tbody tr:first-child a").sendKeys(Keys.ENTER);

        browser.seeHeading("Did it happen?");
        assertThat(browser.text())
                .contains("Was the payment booked at the bank?", "POST /payments", "Does the bank know this payment?");
        browser.picture("console-resolve-light");
        browser.prefer("dark");
        browser.picture("console-resolve-dark");
        tabTo("input[value=applied]").sendKeys(Keys.SPACE);
        tabTo("input[name=checked]").sendKeys(Keys.SPACE);
        tabTo("main form[method=post] button").sendKeys(Keys.ENTER);

        WebElement message = browser.see(".note");
        assertThat(message.getText()).startsWith("Resolved as applied: it never runs again");
        assertThat(message.getDomAttribute("role")).isEqualTo("status");
        assertThat(browser.driver().switchTo().activeElement()).isEqualTo(message);
        browser.picture("console-resolved-dark");
        open("");
        browser.seeHeading("2 records need a decision");
    }

    /** Presses the tab key until an element has the focus, as a person does. */
    private static WebElement tabTo(String css) {
        WebElement wanted = browser.see(css);
        for (int i = 0; i < 40; i++) {
            new Actions(browser.driver()).sendKeys(Keys.TAB).perform();
            if (browser.driver().switchTo().activeElement().equals(wanted)) {
                assertThat(browser.run("return getComputedStyle(arguments[0]).outlineStyle", wanted))
                        .as("the focus can be seen on " + css)
                        .isNotEqualTo("none");
                return wanted;
            }
        }
        throw new AssertionError("the tab key does not reach " + css);
    }

    @Test
    void aRecordThatChangedMeanwhileIsNotResolved() {
        String key = IdempotenceKeys.of(idempotence, "payment-1");
        open("?key=" + key);
        browser.seeHeading("Did it happen?");
        idempotence
                .admin()
                .delete(idempotence.admin().find(StorageKey.parse(key)).orElseThrow());
        browser.see("input[value=not-applied]").click();
        browser.see("input[name=checked]").click();
        browser.see("main form[method=post] button").click();

        assertThat(browser.see(".note").getText()).contains("No such record");
    }

    @Test
    void aPostWithoutTheFormOfThePageIsRefused() {
        String key = IdempotenceKeys.of(idempotence, "payment-1");
        open("?key=" + key);
        browser.seeHeading("Did it happen?");

        browser.run("document.querySelector('input[name=_idempotence]').remove()");
        browser.see("input[value=applied]").click();
        browser.see("input[name=checked]").click();
        browser.see("main form[method=post] button").click();

        await().until(() -> String.valueOf(browser.run("return document.body && document.body.innerText"))
                .contains("403"));
        assertThat(idempotence.admin().listUncertain(Duration.ZERO)).hasSize(3);
    }

    @Test
    void onlyOperatorsMayOpenIt() {
        logIn("anna");
        try {
            browser.seeText("403");
            assertThat(browser.text()).doesNotContain("payments");
            browser.driver().manage().deleteAllCookies();
            browser.open(site + "/idempotence");
            browser.see("#username");
        } finally {
            logIn("olga");
        }
    }

    @Test
    void itOnlyShowsUnlessWritesAreAllowed() {
        try (ConfigurableApplicationContext reading = started("idempotence.console.without-security=true")) {
            Idempotence its = reading.getBean(Idempotence.class);
            reading.getBean(ConsoleApplication.Records.class).claim("payment-1", Duration.ofHours(24));
            reading.getBean(ConsoleApplication.Records.class).pass(Duration.ofMinutes(5));
            browser.open(site(reading) + "/idempotence?key=" + IdempotenceKeys.of(its, "payment-1"));
            browser.seeHeading("Did it happen?");
            assertThat(browser.text()).contains("Decisions are switched off on this page");
            assertThat(browser.driver().findElements(By.cssSelector("form[method=post]")))
                    .isEmpty();
        }
    }

    @Test
    void anUncertainRequestOfThisInstanceIsShownWithItsIdAndItsOwnQuestion() throws Exception {
        HttpRequest payment = HttpRequest.newBuilder(URI.create(site + "/payments"))
                .POST(HttpRequest.BodyPublishers.noBody())
                .header("Idempotency-Key", "\"<b>order-7</b>\"")
                .build();
        HttpClient.newHttpClient().send(payment, HttpResponse.BodyHandlers.ofString());

        open("");
        browser.seeHeading("4 records need a decision");
        assertThat(browser.text()).contains("POST /payments · <b>order-7</b>");
        open("?key=" + IdempotenceKeys.of(idempotence, "<b>order-7</b>"));
        browser.seeHeading("Did it happen?");
        assertThat(browser.text())
                .contains("Does the bank know this payment?")
                .doesNotContain("Was the payment booked at the bank?");
    }

    @Test
    void theEventsOfTheFramesOfTimeAreCounted() throws Exception {
        open("");
        browser.seeHeading("3 records need a decision");
        int replayed = total("replayed");
        int refused = total("refused");
        IdempotenceId id = new IdempotenceId("counted");
        idempotence.execute(id, () -> {
            assertThatThrownBy(() -> idempotence.execute(id, () -> "again"))
                    .isInstanceOf(ExecutionRefusedException.class);
            return "once";
        });
        assertThat(idempotence.execute(id, () -> "again")).isEqualTo("once");
        open("");
        browser.seeHeading("3 records need a decision");
        assertThat(total("replayed")).isEqualTo(replayed + 1);
        assertThat(total("refused")).isEqualTo(refused + 1);
        assertThat(browser.see("figure.unknown svg").getDomAttribute("aria-label"))
                .startsWith("Unknown: ");
        browser.see("nav a:last-child").click();
        browser.see("nav a:last-child[aria-current]");
    }

    private static int total(String series) {
        return Integer.parseInt(browser.see("figure." + series + " .total").getText());
    }

    @Test
    void itIsAccessibleInBothThemes() throws Exception {
        for (String page : List.of(
                "",
                "?id=payment-1",
                "?state=completed",
                "?state=nonsense",
                "?key=" + IdempotenceKeys.of(idempotence, "payment-1"))) {
            open(page);
            browser.see("h1, .note");
            for (String theme : List.of("light", "dark")) {
                browser.prefer(theme);
                assertThat(violations()).as(theme + " " + page).isEmpty();
            }
        }
        browser.driver()
                .manage()
                .logs()
                .get("browser")
                .forEach(line -> assertThat(line.getMessage()).doesNotContain("Content Security Policy"));
    }

    private static List<?> violations() throws IOException {
        try (InputStream axe = ConsoleInBrowserTest.class.getClassLoader().getResourceAsStream(AXE)) {
            browser.run(new String(axe.readAllBytes(), StandardCharsets.UTF_8));
        }
        return (List<?>)
                browser.driver()
                        .executeAsyncScript(
                                "const done = arguments[arguments.length - 1];"
                                        + "axe.run(document, {runOnly: ['wcag2a', 'wcag2aa', 'wcag21aa', 'wcag22aa', 'best-practice']}).then(r => done("
                                        + "r.violations.map(v => v.id + ': ' + v.nodes.map(n => n.html + ' ' + n.failureSummary).join('; '))));");
    }

    @Test
    void itFollowsTheThemeOfItsReader() throws Exception {
        EventHistory history = application.getBean(EventHistory.class);
        for (int i = 0; i < 9; i++) {
            history.onEvent(IdempotenceEvent.REPLAYED, new IdempotenceId("any"));
        }
        open("");
        browser.seeHeading("3 records need a decision");
        Object light = browser.run("return getComputedStyle(document.body).backgroundColor");
        browser.picture("console-light");
        browser.prefer("dark");
        Object dark = browser.run("return getComputedStyle(document.body).backgroundColor");
        browser.picture("console-dark");

        assertThat(dark).isNotEqualTo(light);
    }
}
