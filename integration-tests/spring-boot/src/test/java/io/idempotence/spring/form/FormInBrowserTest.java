package io.idempotence.spring.form;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.idempotence.spring.Chromium;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.openqa.selenium.By;
import org.springframework.context.ConfigurableApplicationContext;

/** Forms in the hands of a person with a real browser. */
@Tag("all")
class FormInBrowserTest {
    private static Chromium browser;
    private static ConfigurableApplicationContext application;
    private static String site;
    private static FormApplication.Shop shop;

    @BeforeAll
    static void start() {
        browser = Chromium.start();
        application = FormApplication.builder().run();
        site = FormApplication.site(application);
        shop = application.getBean(FormApplication.Shop.class);
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
    void openTheForm() {
        shop.booked.clear();
        shop.arrived.set(0);
        shop.bank.countDown();
        browser.prefer("light");
        openForm();
    }

    private static void openForm() {
        browser.open(site + "/pay");
        browser.seeHeading("Pay");
        browser.see("#pay button");
    }

    @Test
    void aDoubleClickRunsOnceAndShowsTheResult() {
        shop.slowBank();

        browser.run("const button = document.querySelector('#pay button');"
                + "button.click(); fetch('/running').then(() => button.click());");
        await().until(() -> shop.arrived.get() == 2);
        shop.bank.countDown();

        browser.seeHeading("Payment 1 is booked");
        assertThat(shop.booked).containsExactly("10");
    }

    @Test
    void theBackButtonAndASecondSubmitLeadToTheSameResult() {
        browser.see("#pay button").click();
        browser.seeHeading("Payment 1 is booked");

        browser.driver().navigate().back();
        browser.seeHeading("Pay");
        browser.see("#pay button").click();

        browser.seeHeading("Payment 1 is booked");
        assertThat(shop.booked).containsExactly("10");
    }

    @Test
    void reloadingTheResultSendsNothing() {
        browser.see("#pay button").click();
        browser.seeHeading("Payment 1 is booked");

        browser.driver().navigate().refresh();

        browser.seeHeading("Payment 1 is booked");
        assertThat(shop.booked).hasSize(1);
    }

    @Test
    void aFormThatIsOpenedAnewRunsAnew() {
        browser.see("#pay button").click();
        browser.seeHeading("Payment 1 is booked");
        openForm();
        browser.see("#pay button").click();

        browser.seeHeading("Payment 2 is booked");
    }

    @Test
    void eachFormOfAPageHasItsOwnToken() {
        browser.see("#pay button").click();
        browser.seeHeading("Payment 1 is booked");
        browser.driver().navigate().back();
        browser.see("#tip button").click();

        browser.seeHeading("Payment 2 is booked");
        assertThat(shop.booked).containsExactly("10", "1");
    }

    @Test
    void anUploadRunsOnce(@TempDir Path directory) throws Exception {
        Path receipt = Files.writeString(directory.resolve("receipt.txt"), "a receipt");
        browser.see("#upload input[type=file]").sendKeys(receipt.toString());
        Object statuses = browser.driver()
                .executeAsyncScript("const done = arguments[0];"
                        + "const send = () => fetch('/upload', {method: 'POST', body: new FormData(document.getElementById('upload'))})"
                        + "  .then(r => r.url.replace(location.origin, ''));"
                        + "send().then(a => send().then(b => done(a + ' ' + b)));");

        assertThat(statuses).isEqualTo("/paid/1 /paid/1");
        assertThat(shop.booked).containsExactly("a receipt");
    }

    @Test
    void changedContentUnderTheSameTokenIsExplained() throws Exception {
        browser.see("#pay button").click();
        browser.seeHeading("Payment 1 is booked");
        browser.driver().navigate().back();
        browser.seeHeading("Pay");
        browser.see("#pay input[name=amount]").clear();
        browser.see("#pay input[name=amount]").sendKeys("20");
        browser.see("#pay button").click();

        browser.seeHeading("You have already sent this form");
        assertThat(shop.booked).containsExactly("10");
        browser.picture("form-already-sent-light");
    }

    @Test
    void anUnknownOutcomeIsExplained() {
        browser.run("document.querySelector('#pay input[name=amount]').value = '13'");
        browser.see("#pay button").click();
        browser.seeHeading("Payment 1 is booked");
        browser.driver().navigate().back();
        browser.seeHeading("Pay");
        browser.run("document.querySelector('#pay input[name=amount]').value = '13'");
        browser.see("#pay button").click();

        browser.seeHeading("We cannot confirm the result yet");
        assertThat(shop.booked).containsExactly("13");
    }

    @Test
    void aForgedTokenIsRefusedWithAPageThatLeadsBack() throws Exception {
        browser.run("document.querySelector('#pay input[name=_idempotence]').value += 'x'");
        browser.see("#pay button").click();

        browser.seeHeading("This form is no longer valid");
        assertThat(shop.booked).isEmpty();
        browser.picture("form-not-valid-light");
        browser.prefer("dark");
        browser.picture("form-not-valid-dark");
        browser.see("a").click();
        browser.seeHeading("Pay");
    }

    @Test
    void aTokenOfAnotherSessionIsRefused() {
        String foreign = (String) browser.run("return document.querySelector('#pay input[name=_idempotence]').value");
        browser.driver().manage().deleteAllCookies();
        openForm();
        browser.run("document.querySelector('#pay input[name=_idempotence]').value = arguments[0]", foreign);
        browser.see("#pay button").click();

        browser.seeHeading("This form is no longer valid");
        assertThat(shop.booked).isEmpty();
    }

    @Test
    void anExpiredTokenIsRefused() {
        browser.open(site + "/old");
        browser.seeHeading("Pay");
        browser.see("#pay button").click();

        browser.seeHeading("This form was open for too long");
        assertThat(shop.booked).isEmpty();
    }

    @Test
    void thePageIsInTheLanguageOfItsReader() throws Exception {
        browser.driver()
                .executeCdpCommand(
                        "Network.setUserAgentOverride",
                        Map.of("userAgent", "Chromium", "acceptLanguage", "zh-CN,zh;q=0.9"));
        try {
            browser.run("document.querySelector('#pay input[name=_idempotence]').value += 'x'");
            browser.see("#pay button").click();
            browser.seeHeading("此表单已失效");
            assertThat(browser.driver().findElement(By.tagName("html")).getDomAttribute("lang"))
                    .startsWith("zh");
            browser.picture("form-not-valid-zh");
        } finally {
            browser.driver()
                    .executeCdpCommand(
                            "Network.setUserAgentOverride", Map.of("userAgent", "Chromium", "acceptLanguage", "en"));
        }
    }
}
