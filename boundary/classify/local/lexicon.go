// SPDX-License-Identifier: Apache-2.0

package local

import (
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// lexicon sorts words by what they do in an order given to a model. Of pairs and
// triples of these kinds, whatever stands between, weights are learned too: they
// hold where the words of a new attack are others.
//
// Beside English, of the twenty languages of measure/injections. A word with a star is the
// beginning of longer ones.
var lexicon = [...]string{
	// leave what was said
	`ignore ignoring disregard forget forgetting bypass override overrides overriding overrule skip drop discard dismiss abandon cancel stop neglect omit
	ignoriere ignorieren vergiss vergesse missachte ignorez ignorer oubliez oublie ignora ignorar olvida olvide ignorare dimentica ignoreer vergeet esqueça esquece
	игнорируй игнорируйте забудь забудьте yoksay unut
	ignor* abaikan lupakan tinggalkan vergesst missacht* lass oubli* laisse* néglig* olvid* deja descarta* esquec* desconsider* dimentic* tralascia* negeer* vergeet laat игнор* забуд* отлож* пренебре* ігнор* відклад* zignoru* ignoru* zapomnij pomiń odłóż unut* bırak* yoksay* kalimutan balewala* iwan pansinin bỏ quên تجاهل* انس انسَ اترك انسى अनदेख* भूल छोड़* उपेक्ष* उपेक्षा ভুলে উপেক্ষা বাদ ละเว้น ลืม เพิกเฉย ไม่ต้องสนใจ 忽略 忘掉 忘记 忘了 无视 不要理会 跳过 無視 忘れ 中断 무시 잊 내려놓`,
	// what was said before
	`previous prior above earlier preceding former before initial original foregoing past existing
	vorherige vorherigen bisherigen obigen précédentes précédents antérieures anteriores anterior previas previos precedenti vorige eerdere предыдущие предыдущих önceki
	bisherig* vorherig* vorig* frühere* précédent* antérieur* anterior* previ* precedent* anterior* vorige eerder* предыдущ* прежн* раньше выше попередн* раніше вище poprzedni* wcześniej* wyżej önceki* yukarı* eski* sebelum* sebelumnya tadi naunang nauna trước السابق* السابقة أعلاه القديم* पिछल* पुरान* ऊपर পূর্বের উপরে ก่อนหน้า ที่ผ่านมา ข้างบน 之前 以前 上面 先前 これまで 以前 上記 今まで 이전 지금까지 위의`,
	// what binds a model
	`instruction instructions prompt prompts rule rules guideline guidelines directive directives command commands order orders restriction restrictions constraint constraints policy policies safeguard safeguards filter filters directions programming
	anweisung anweisungen befehle regeln consignes règles instrucciones reglas instruções regras istruzioni regole instructies инструкции правила команды talimatları talimatlar kurallar
	anweisung* vorgabe* regel* richtlinie* befehl* instruction* consigne* règle* directive* instruccion* regla* norma* orden órdenes instruç* instruco* regra* diretriz* istruzion* regol* instructie* regels voorschrift* инструкц* правил* указани* команд* ограничен* інструкц* вказівк* обмежен* instrukcj* zasad* polece* wytyczn* ogranicze* talimat* kural* komut* sınır* instruksi* aturan perintah batasan tagubilin* tuntunin* utos lệnh quy تعليمات* التعليمات القواعد قواعد أوامر قيود निर्देश* नियम* आदेश* প্রতিবন্ধ* নির্দেশ* সীমা คำสั่ง กฎ ข้อจำกัด 指令 指示 规则 规定 命令 限制 提示词 ルール 規則 制限 プロンプト 지시 규칙 명령 제한 프롬프트`,
	// a model
	`ai llm assistant chatbot bot gpt chatgpt model agent copilot claude gemini llama assistants agents
	assistent assistenten ki assistente asistente ia modelo modèle modello ассистент модель asistan
	assistent* sprachmodell* assistant* asistent* assistente* modell* modèl* modelo* modello* taalmodel ассистент* модел* нейросет* ии асистент* ші агент* asystent* si model* asistan* yapay ajan* asisten* agen katulong modelo trợ mô المساعد مساعد النموذج نموذج الذكاء الوكيل सहायक मॉडल एआई एजेंट সহকারী মডেল এআই এজেন্ট ผู้ช่วย โมเดล เอเจนต์ 助手 模型 人工智能 代理 智能体 アシスタント モデル 人工知能 エージェント 어시스턴트 모델 인공지능 에이전트 비서`,
	// the one who reads
	`you your yourself u du sie ihr tu vous votre tú usted você tuo ты вы
	dein* deine* euch tuoi tua je jouw твой твои твоё твоя тебя тебе тобі твої твій ciebie tobie twój twoje twoich sana senin kamulah ikaw bạn أنت لك عليك तुम तुम्ह* তুমি คุณ 你 您 あなた 당신 너`,
	// a bond
	`must should shall need needs required require mandatory obligatory always immediately strictly ensure please kindly now first instead
	müssen musst sofort devez dois debes debe deve jetzt bitte должен должны теперь
	musst müsst* jetzt sofort dois doit devez maintenant immédiatement debe* debes tienes ahora inmediatamente deve* devi agora imediatamente adesso subito ora moet moeten nu должн* обязан* сейчас немедленно нужно мусиш повинен* зараз негайно musi musisz teraz natychmiast gerek* lazım zorunda* hemen şimdi harus wajib segera sekarang dapat agad ngayon phải ngay يجب عليك الآن فورا فوراً अभी तुरंत เดี๋ยวนี้ ทันที 立即 马上 務必 必ず 今すぐ なければなりません 반드시 즉시 해야`,
	// emphasis
	`important urgent critical attention warning notice note alert emergency priority crucial essential
	wichtig achtung dringend urgente importante attenzione atención important важно внимание önemli
	wichtig* dringend* achtung hinweis important* urgent* attention importante* urgente* aviso atenç* atenci* attenzione belangrijk* dringend* важн* срочн* внимание увага терміново ważne pilne uwaga önemli* acil dikkat penting darurat perhatian mahalaga paalala babala quan trọng khẩn lưu مهم* عاجل* تنبيه महत्वपूर्ण ज़रूरी सूचना চেতাবনি গুরুত্বপূর্ণ জরুরি ด่วน 重要 紧急 注意 重要 緊急 注意 중요 긴급 주의`,
	// to say
	`say print output reply respond answer write repeat tell reveal display show return echo include mention state append add insert disclose translate summarize
	sage sag schreibe antworte dis écris répondez responde escribe di scrivi rispondi zeg скажи напиши ответь söyle yaz
	antworte* schreib* sag* wiederhol* zeig* gib* nenn* verrat* répond* écri* affich* montr* révèl* répèt* dis respond* escrib* muestra* revel* repit* dime cuént* escrev* mostr* repita diga rispond* scriv* rivel* ripet* dimmi antwoord* schrijf* toon* herhaal* noem* ответ* напиш* выведи* покаж* повтор* скажи раскро* відповід* покажи виведи повтори odpowied* napisz* pokaż* powtórz* podaj* yanıtla* cevap* göster* söyle* tekrarla* jawab* tulis* tampilkan* katakan* ulangi* tunjukkan* sumagot isulat ipakita sabihin* ulitin trả viết hiển أجب اكتب أظهر اعرض كرر أخبر* قل बताओ बताए* दिखाओ दिखाए* लिखो लिखे* दोहरा* उत्तर বলো দেখাও লেখো উত্তর เขียน แสดง บอก ทวน 回答 输出 显示 告诉 重复 写出 泄露 答えて 出力 表示 教えて 繰り返 書いて 대답 출력 보여 알려 반복 말해`,
	// to send
	`send forward email mail transfer upload post submit share exfiltrate leak deliver transmit publish pay wire
	sende senden envoyez envoie envía enviar invia stuur отправь отправьте gönder
	send* schick* überweis* übertrag* leite* envoi* envoy* vire* transf* publi* envia* envía* enví* envie* transfer* mand* invi* trasfer* bonific* stuur* plaats* overmaak* отправ* перевед* перешл* опубликуй* надішл* перекаж* опублікуй* wyślij* przelej* przekaż* opublikuj* gönder* aktar* yolla* kirim* unggah* ipadala maglipat* ilipat gửi chuyển أرسل* حول* حوّل* انشر* भेज* ट्रांसफ़र পাঠাও পাঠিয়ে ส่ง โอน โพสต์ 发送 转账 转发 上传 发布 寄给 送信 送って 送金 転送 投稿 보내 송금 이체 전송 게시`,
	// to do
	`execute run call invoke use perform do delete remove change update modify set create install download open visit click navigate fetch buy purchase reserve book schedule invite grant disable enable activate follow complete solve proceed
	führe lösche exécutez ejecuta borra execute esegui выполни удали
	lösch* öffne* ruf* führ* schalte* supprim* ouvr* exécut* appel* efface* borr* elimin* abr* ejecut* llam* apag* execut* cham* cancell* apri* esegu* chiam* spegn* verwijder* open* voer* удал* открой* выполни* вызови* выключ* запусти* видал* відкри* відчин* виконай* usuń* otwórz* wykonaj* wywołaj* wyłącz* uruchom* çalıştır* çağır* kapat* hapus* buka* jalankan* panggil* matikan* burahin buksan patayin tawagin xóa mở chạy gọi tắt احذف* افتح* نفذ* استدع* أوقف* شغل* हटा* खोल* बंद মুছে খুলে চালাও ডাকো ลบ เปิด รัน เรียก ปิด 删除 打开 执行 调用 关闭 安装 运行 削除 開けて 実行 呼び出 停止 삭제 열어 실행 호출 꺼`,
	// a secret, or what is worth one
	`password passwords passwd credential credentials secret secrets key keys token tokens api apikey ssh private confidential sensitive personal ssn passport iban account bank card cookie cookies env id_rsa
	passwort mot contraseña senha пароль şifre
	passwort* kennwort* geheim* schlüssel* zugangsdaten zugangscode* mot secret* clé* identifiant* contraseña* secret* clave* credencial* senha* segred* chave* segret* chiav* credenzial* wachtwoord* geheim* sleutel* парол* секрет* ключ* тайн* учётн* таємн* hasł* hasło tajn* klucz* parola* şifre* gizli* anahtar* sandi rahasia* kunci kredensial lihim* susi password* mật khẩu bí khóa كلمة المرور السر سري* مفتاح* بيانات पासवर्ड गुप्त राज़* कुंजी গোপন পাসওয়ার্ড চাবি รหัสผ่าน ลับ กุญแจ 密码 秘密 密钥 凭据 口令 パスワード 秘密 鍵 認証情報 비밀번호 비밀 암호 키를`,
	// who has power
	`system developer developers admin administrator root owner operator user creator openai anthropic google microsoft security authorized authority sysadmin
	nutzer benutzer utilisateur usuario utente пользователь kullanıcı
	administrator* betreiber* entwickler* nutzer* benutzer* system* utilisateur* administrateur* développeur* système usuario* administrador* desarrollador* sistema usuári* desenvolvedor* utente* amministrator* sviluppator* gebruiker* beheerder* ontwikkelaar* systeem* пользовател* администратор* разработчик* систем* користувач* адміністратор* розробник* użytkownik* programist* systemow* kullanıcı* yönetici* geliştirici* sistem* pengguna* pengembang* tagapangasiwa sistema người quản المستخدم* المدير المطور مطور النظام مسؤول उपयोगकर्ता* व्यवस्थापक डेवलपर सिस्टम ব্যবহারকারী* প্রশাসক ডেভেলপার সিস্টেম ผู้ใช้ ผู้ดูแลระบบ ผู้พัฒนา 用户 管理员 开发者 系统 运营 ユーザー 管理者 開発者 システム 사용자 관리자 개발자 시스템`,
	// a part to play
	`pretend act roleplay role persona imagine simulate character play become behave dan jailbreak jailbroken unrestricted unfiltered uncensored hypothetical fictional mode debug
	tue agissez actúa finge comportati представь
	spiel* stell rolle imagin* rôle actúa finge* imagina* papel finja* faça immagin* ruolo fingi* doe speel* stel rol представ* притвор* роль сыгра* уяви* удай* wyobra* udawaj* hayal bayang* berpura* peran isipin magkunwari* tưởng giả vai تخيل* تظاهر* دور कल्पना ভাবো সেজে จินตนาการ แกล้ง สวมบท 假装 扮演 想象 角色 ふりをして 演じ 想像 役割 상상 척하 역할 연기`,
	// a new thing
	`new updated following actual real true next below real updated different neue neuen nouvelle nouvelles nueva nuevas nuovo nuove novas новые yeni
	neue* nouvel* nouveau nuev* nov* nuov* nieuw* нов* nowe* nowy nowa yeni* baru bagong mới جديد* 次の 다음 새`,
	// the thing that was asked for
	`task tasks query question request goal objective assignment job original purpose message conversation context
	aufgabe tâche tarea tarefa compito задача görev
	aufgab* anfrag* auftrag* zusammenfass* tâch* demand* mission résum* tarea* petici* pregunt* resum* pedido* pergunt* compit* richiest* domand* riassunt* taak verzoek* opdracht* samenvat* задач* запрос* вопрос* задани* пересказ* завданн* запит* питанн* zadani* prośb* pytani* streszczeni* görev* istek* isteğ* soru* özet* tugas* permintaan* pertanyaan* ringkas* gawain* hiling tanong* buod nhiệm yêu tóm المهمة مهمة الطلب السؤال الملخص कार्य सवाल अनुरोध सारांश অনুরোধ সারাংশ คำขอ คำถาม สรุป 任务 请求 问题 总结 摘要 タスク 依頼 質問 要約 작업 요청 질문 요약`,
	// silence
	`never not don't dont without silently secretly hidden unnoticed quietly inform notify informing mentioning telling
	nicht ohne sans sin senza не
	nicht keine* nie niemals heimlich verschweig* jamais aucun* secrètement ningun* sin não sem nenhum* senza nessun* niet nooit zonder geen не никогда тайно ніколи nie nigdy hiçbir asla olmadan vermeden jangan tanpa tidak huwag nang không đừng لا دون بدون ألا لم मत কোরো อย่า โดยไม่ 不要 ないで せずに 決して 하지 않고 말고 절대`,
	// text and its edges
	`text document content page email data input tool output response function result information end begin start stop endoftext
	dokument* seite* nachricht* message* documento* página* mensaje* mensagem* messaggio pagina* bericht* документ* страниц* сообщени* текст* сторінк* повідомленн* dokument* stron* wiadomoś* belge* sayfa* mesaj* dokumen* halaman* pesan* teks dokumento* pahina* mensahe* tài trang thông المستند الصفحة رسالة الرسالة दस्तावेज़* संदेश নথি বার্তা เอกสาร ข้อความ 文档 页面 消息 文本 邮件 文書 メッセージ 문서 페이지 메시지 메일`,
}

// kinds finds the kind of a word, letter by letter: each beginning of a word of the lexicon is
// in it by its hash, so that most words are left after a letter or two.
type kinds struct {
	at     [1 << 14]beginning
	folded [0x600]uint16 // small letters of those below U+0600
}

type beginning struct {
	hash uint32
	kind uint8 // of the word that ends here; 0: none does
	stem bool  // longer words begin with it
}

// lexiconKinds is made when a text is first read: most runs of the program read none.
var lexiconKinds = sync.OnceValue(func() *kinds {
	t := new(kinds)
	for r := range t.folded {
		t.folded[r] = uint16(r)
		if l := unicode.ToLower(rune(r)); utf8.RuneLen(l) == utf8.RuneLen(rune(r)) {
			t.folded[r] = uint16(l)
		}
	}
	for k, words := range lexicon {
		for w := range strings.FieldsSeq(words) {
			w, stem := strings.CutSuffix(w, "*")
			_, first := utf8.DecodeRuneInString(w)
			h := uint64(offset)
			for i := 0; i < len(w); {
				_, n := utf8.DecodeRuneInString(w[i:])
				for range n {
					h = (h ^ uint64(w[i])) * prime
					i++
				}
				e := t.slot(h)
				e.hash = hashOf(h)
				if i == len(w) && e.kind == 0 {
					e.kind = uint8(k + 1)
				}
				if i == len(w) {
					e.stem = e.stem || stem || unspaced(w, first)
				}
			}
		}
	}
	return t
})

func hashOf(h uint64) uint32 { return uint32(mix(h)>>32) | 1 }

// slot is where the beginning with the hash h stands, or would.
func (t *kinds) slot(h uint64) *beginning {
	hash := hashOf(h)
	i := hash % uint32(len(t.at))
	for t.at[i].hash != 0 && t.at[i].hash != hash {
		i = (i + 1) % uint32(len(t.at))
	}
	return &t.at[i]
}

// of is the kind of a word: that of the longest stem it begins with, or its own. open says that the
// word may end anywhere, as where no spaces are written.
func (t *kinds) of(word string, open bool) (kind uint8) {
	h := uint64(offset)
	for i := 0; i < len(word); {
		n := 1
		if word[i] >= utf8.RuneSelf {
			_, n = utf8.DecodeRuneInString(word[i:])
		}
		for range n {
			h = (h ^ uint64(word[i])) * prime
			i++
		}
		e := t.slot(h)
		if e.hash == 0 {
			return kind
		}
		if e.kind != 0 && (e.stem || open || i == len(word)) {
			kind = e.kind
		}
	}
	return kind
}
